package web

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"payonce/checkout"
	"payonce/web/view"
)

// reference is what an id or a slug of ours looks like. Anything else in an
// address names nothing, and is not worth a query.
var reference = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// referenced reads a part of the path that names something.
func referenced(c echo.Context, name string) (string, error) {
	id := c.Param(name)
	if !reference.MatchString(id) {
		return "", checkout.ErrNotFound
	}
	return id, nil
}

// catalogue answers GET /.
func (s *Server) catalogue(c echo.Context) error {
	offers, err := s.cfg.Service.Catalogue(c.Request().Context(), visitOf(c).account)
	if err != nil {
		return err
	}
	private(c)
	if wantsHTML(c) {
		return s.cataloguePage(c, offers)
	}
	v := checkout.CatalogueView{Courses: []checkout.CourseView{}}
	for _, o := range offers {
		v.Courses = append(v.Courses, o.View())
	}
	return s.sendJSON(c, v)
}

// course answers GET /courses/{slug}. The page carries a new key each time,
// stored nowhere: what keeps two orders apart is the orders' own index.
func (s *Server) course(c echo.Context) error {
	offer, err := s.offer(c)
	if err != nil {
		return err
	}
	if wantsHTML(c) {
		return s.coursePage(c, offer)
	}
	private(c)
	return s.sendJSON(c, offer.View())
}

func (s *Server) offer(c echo.Context) (checkout.Offer, error) {
	slug, err := referenced(c, "slug")
	if err != nil {
		return checkout.Offer{}, err
	}
	return s.cfg.Service.Offer(c.Request().Context(), visitOf(c).account, slug)
}

// lessonView is the JSON of a lesson.
type lessonView struct {
	Course  string `json:"course"`
	Number  int    `json:"number"`
	Title   string `json:"title"`
	Minutes int    `json:"minutes"`
	HTML    string `json:"html"`
}

// lesson answers GET /courses/{slug}/lessons/{n}, for those who have the course.
func (s *Server) lesson(c echo.Context) error {
	offer, err := s.offer(c)
	if err != nil {
		return err
	}
	lessons := view.Lessons(offer.Course.Slug)
	n, err := strconv.Atoi(c.Param("n"))
	if err != nil || strconv.Itoa(n) != c.Param("n") || n < 1 || n > len(lessons) {
		return checkout.ErrNotFound
	}
	if !offer.Owned {
		return &refusal{err: checkout.ErrNotFound, detail: "This account does not have the course. Take the course, then open its lessons."}
	}
	private(c)
	if wantsHTML(c) {
		return s.lessonPage(c, offer, lessons, n)
	}
	lesson := lessons[n-1]
	var text strings.Builder
	if err := lesson.Body.Render(c.Request().Context(), &text); err != nil {
		return err
	}
	return s.sendJSON(c, lessonView{offer.Course.Slug, n, lesson.Title, lesson.Minutes, text.String()})
}

func coursePath(slug string) string { return "/courses/" + slug }

func lessonPath(slug string, n int) string {
	return coursePath(slug) + "/lessons/" + strconv.Itoa(n)
}

// readingPath is where somebody goes who has the course.
func readingPath(slug string) string {
	if len(view.Lessons(slug)) == 0 {
		return coursePath(slug)
	}
	return lessonPath(slug, 1)
}

package web

import (
	"crypto/rand"
	"net/http"

	"github.com/labstack/echo/v4"

	"payonce/checkout"
	"payonce/web/view"
)

func (s *Server) cataloguePage(c echo.Context, offers []checkout.Offer) error {
	m := view.Catalogue{Frame: s.frame(view.CoursesSection)}
	for i, o := range offers {
		lessons := view.Lessons(o.Course.Slug)
		row := view.CatalogueCourse{
			Slug: o.Course.Slug, Title: o.Course.Title, Summary: o.Course.Summary, Price: price(o.Course.Price), Owned: o.Owned,
		}
		if len(lessons) > 0 {
			row.Lessons, row.Time = counted(len(lessons), "lesson"), readingTime(minutesOf(lessons))
		}
		m.Courses = append(m.Courses, row)
		if m.Start.Label == "" && !o.Owned {
			m.Start = view.Link{Label: "Start with the first course", URL: coursePath(o.Course.Slug)}
			if i > 0 {
				m.Start.Label = "Go on with the next course"
			}
		}
	}
	return s.sendPage(c, http.StatusOK, view.CataloguePage(m))
}

func minutesOf(lessons []view.Lesson) (sum int) {
	for _, l := range lessons {
		sum += l.Minutes
	}
	return sum
}

func (s *Server) coursePage(c echo.Context, o checkout.Offer) error {
	lessons := view.Lessons(o.Course.Slug)
	syllabus := view.SyllabusOf(o.Course.Slug)
	m := view.Course{
		Frame: s.frame(view.CoursesSection), Slug: o.Course.Slug, Title: o.Course.Title, Summary: o.Course.Summary,
		Price: price(o.Course.Price), Outcomes: syllabus.Outcomes, Needs: syllabus.Needs,
		Lessons: contents(o, lessons),
	}
	if len(lessons) > 0 {
		m.Facts = []view.Fact{
			{Label: "Time", Value: readingTime(minutesOf(lessons))},
			{Label: "Lessons", Value: counted(len(lessons), "lesson")},
		}
	}
	switch {
	case o.Owned:
		m.State = view.CourseOwned
		var err error
		if m.OrderURL, err = s.receiptURL(c, o.Course.Slug); err != nil {
			return err
		}
	case o.OpenOrder != "":
		m.State, m.OrderURL = view.CourseOpen, orderPath(o.OpenOrder)
	case o.Course.Free():
		m.State, m.OrderKey = view.CourseFree, rand.Text()
	default:
		m.State, m.OrderKey = view.CourseForSale, rand.Text()
	}
	return s.sendPage(c, http.StatusOK, view.CoursePage(m))
}

// receiptURL finds the order by which the account has a course.
func (s *Server) receiptURL(c echo.Context, slug string) (string, error) {
	orders, err := s.cfg.Service.Orders(c.Request().Context(), visitOf(c).account)
	if err != nil {
		return "", err
	}
	for _, o := range orders {
		if o.Course.Slug == slug && o.Status == checkout.OrderPaid {
			return orderPath(o.ID), nil
		}
	}
	return "", nil
}

// contents lists the lessons of a course, with links for those who have it.
func contents(o checkout.Offer, lessons []view.Lesson) []view.LessonLink {
	var list []view.LessonLink
	for _, l := range lessons {
		link := view.LessonLink{Number: l.Number, Title: l.Title, Time: readingTime(l.Minutes)}
		if o.Owned {
			link.URL = lessonPath(o.Course.Slug, l.Number)
		}
		list = append(list, link)
	}
	return list
}

func (s *Server) lessonPage(c echo.Context, o checkout.Offer, lessons []view.Lesson, n int) error {
	l := lessons[n-1]
	return s.sendPage(c, http.StatusOK, view.ReadingPage(view.Reading{
		Frame: s.frame(view.CoursesSection), Course: o.Course.Title, CourseURL: coursePath(o.Course.Slug),
		Number: n, Title: l.Title, Time: readingTime(l.Minutes), Content: l.Body, Contents: contents(o, lessons),
	}))
}

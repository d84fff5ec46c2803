package view_test

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"payonce/web/view"
)

// slugs reads the courses that are for sale from the migration that puts them into the shop.
func slugs(t *testing.T) []string {
	t.Helper()
	sql, err := os.ReadFile("../../migrations/00004_catalogue.sql")
	require.NoError(t, err)
	var found []string
	for _, m := range regexp.MustCompile(`(?m)^\s*\('([a-z0-9-]+)',`).FindAllSubmatch(sql, -1) {
		found = append(found, string(m[1]))
	}
	require.NotEmpty(t, found, "no course found in the migration")
	return found
}

func render(t *testing.T, lesson view.Lesson) string {
	t.Helper()
	var html strings.Builder
	require.NoError(t, lesson.Body.Render(context.Background(), &html))
	return html.String()
}

func TestCatalogue(t *testing.T) {
	t.Parallel()

	t.Run("EveryCourseForSaleHasLessonsAndASyllabus", func(t *testing.T) {
		t.Parallel()
		for _, slug := range slugs(t) {
			require.GreaterOrEqual(t, len(view.Lessons(slug)), 3, slug)
			syllabus := view.SyllabusOf(slug)
			require.NotEmpty(t, syllabus.Outcomes, slug)
			require.NotEmpty(t, syllabus.Needs, slug)
		}
	})

	t.Run("AnUnknownCourseHasNone", func(t *testing.T) {
		t.Parallel()
		require.Nil(t, view.Lessons("no-such-course"))
		require.Zero(t, view.SyllabusOf("no-such-course"))
	})
}

func TestLessons(t *testing.T) {
	t.Parallel()
	var (
		tags      = regexp.MustCompile(`<[^>]*>`)
		listings  = regexp.MustCompile(`(?s)<pre[^>]*>(.*?)</pre>`)
		emptyCode = regexp.MustCompile(`<code[^>]*>\s*</code>`)
	)
	for _, slug := range slugs(t) {
		titles := map[string]bool{}
		for i, lesson := range view.Lessons(slug) {
			t.Run(slug+"/"+lesson.Title, func(t *testing.T) {
				t.Parallel()
				require.Equal(t, i+1, lesson.Number, "numbers count up from 1")
				require.NotEmpty(t, strings.TrimSpace(lesson.Title))
				require.Positive(t, lesson.Minutes)

				html := render(t, lesson)
				require.NotRegexp(t, `<h[1-6][\s>]`, html, "headings belong to the page around the lesson")
				require.NotRegexp(t, `<[^>]*\sstyle=`, html, "the content security policy refuses inline styles")
				require.NotRegexp(t, emptyCode, html)
				for _, listing := range listings.FindAllStringSubmatch(html, -1) {
					require.NotEmpty(t, strings.TrimSpace(tags.ReplaceAllString(listing[1], "")), "an empty listing")
				}

				prose := tags.ReplaceAllString(listings.ReplaceAllString(html, " "), " ")
				require.GreaterOrEqual(t, len(strings.Fields(prose)), 350, "a lesson teaches something")
				require.LessOrEqual(t, len(strings.Fields(prose)), 750, "a lesson is read in one sitting")
				require.NotContains(t, prose, "!")
				require.Contains(t, prose, "Exercise: ")
				require.Equal(t, 1, strings.Count(prose, "If you remember one thing:"))
			})
			require.False(t, titles[lesson.Title], "two lessons of %s are called %q", slug, lesson.Title)
			titles[lesson.Title] = true
		}
	}
}

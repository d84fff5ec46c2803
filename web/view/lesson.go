package view

import "github.com/a-h/templ"

// Lesson is the frame around one lesson of a course that the account owns.
type Lesson struct {
	Frame     Frame
	Course    string
	CourseURL string
	Number    int // from 1
	Title     string
	Time      string          // "18 min"; may be empty
	Content   templ.Component // the text, without its title: headings from h2 down
	Contents  []LessonLink    // every lesson of the course, in order; previous and next are found here
}

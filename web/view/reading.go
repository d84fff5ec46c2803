package view

import "github.com/a-h/templ"

// Reading is a lesson with its frame: where it stands in its course, and the way to the others.
type Reading struct {
	Frame     Frame
	Course    string
	CourseURL string
	Number    int // from 1
	Title     string
	Time      string          // "18 min"; may be empty
	Content   templ.Component // the text, without its title: Lesson.Body
	Contents  []LessonLink    // every lesson of the course, in order; previous and next are found here
}

// neighbour returns the lesson that many places away, or the zero LessonLink if there is none.
func (m Reading) neighbour(steps int) LessonLink {
	for _, lesson := range m.Contents {
		if lesson.Number == m.Number+steps {
			return lesson
		}
	}
	return LessonLink{}
}

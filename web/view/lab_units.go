package view

// A unit chart has a mark for each worker, eight in a row, so that 32 workers fit on a phone and can be counted.
const (
	unitPitch  = 16
	unitsInRow = 8
)

func unitsWidth(marks []ShapeKind) int { return unitPitch * min(max(len(marks), 1), unitsInRow) }

func unitsHeight(marks []ShapeKind) int {
	return unitPitch * max((len(marks)+unitsInRow-1)/unitsInRow, 1)
}

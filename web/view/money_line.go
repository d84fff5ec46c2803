package view

// Charged answers the first question of every page about an order: was I charged?
// A filled mark is money with the shop, a ring is money that is not; a dashed one is not certain yet.
type Charged string

// The answers. Each has a mark of its own, so that none is told by colour alone.
const (
	NotCharged   Charged = "no"         // ring
	ChargedOnce  Charged = "yes"        // filled
	NotKnownYet  Charged = "unknown"    // dashed amber ring
	OnItsWay     Charged = "processing" // dashed green ring
	PartRefunded Charged = "part"       // half filled
	Refunded     Charged = "refunded"   // green ring
)

// mark is the name of the symbol in the sprite.
func (c Charged) mark() string {
	switch c {
	case ChargedOnce:
		return "charge"
	case NotKnownYet, OnItsWay, PartRefunded, Refunded:
		return string(c)
	}
	return "none"
}

package browser

import _ "embed" // the measure

//go:embed contrast.js
var measure string

// leastContrast is what WCAG 2 asks for at level AA.
const leastContrast = 4.5

// text is one text that can be seen, and its contrast with what is behind it.
type text struct {
	Text, Where, Color, Ground string
	Ratio                      float64
}

func (p *Page) texts() []text { return Eval[[]text](p, measure) }

// Contrast fails the test if a text that can be seen has too little contrast with what is behind it. It
// returns how many texts there are.
func (p *Page) Contrast() (texts int) {
	p.tb.Helper()
	all := p.texts()
	for _, x := range all {
		if x.Ratio < leastContrast {
			p.tb.Errorf("too pale: %+v", x)
		}
	}
	return len(all)
}

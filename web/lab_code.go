package web

import (
	"embed"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"sync"

	"payonce/checkout"
	"payonce/idempotency"
	"payonce/idempotency/racelab"
	"payonce/web/view"
)

// labSources are the packages that carry the source which the lab shows, by
// folder.
var labSources = map[string]embed.FS{"idempotency": idempotency.Source, "checkout": checkout.Source}

// labCode are the places that the variants name, with their source.
var labCode = sync.OnceValue(func() map[racelab.Code]view.LabCode {
	shown := map[racelab.Code]view.LabCode{}
	for _, e := range racelab.All() {
		for _, v := range e.Variants {
			for _, code := range []*racelab.Code{v.Uses, v.Shop} {
				if code != nil {
					shown[*code] = sourceOf(*code)
				}
			}
		}
	}
	return shown
})

// codeOf are the places of a variant: what it calls, and where the shop does the
// same, if that is another place.
func codeOf(v *racelab.Variant) (list []view.LabCode) {
	add := func(says string, code *racelab.Code) {
		if code != nil {
			place := labCode()[*code]
			place.Says = says
			list = append(list, place)
		}
	}
	if v.Shop == nil {
		add("The shop’s own code, run here", v.Uses)
	} else {
		add("Run here", v.Uses)
	}
	add("The shop’s own code", v.Shop)
	return list
}

// sourceOf cuts a function or a type, with its comment, out of its file. Of one
// that is not there the name is all there is.
func sourceOf(code racelab.Code) view.LabCode {
	place := view.LabCode{Symbol: code.Symbol, Place: code.File}
	source, err := labSources[path.Dir(code.File)].ReadFile(path.Base(code.File))
	if err != nil {
		return place
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, code.File, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return place
	}
	for _, decl := range file.Decls {
		name, comment := declared(decl)
		if name != code.Symbol {
			continue
		}
		from := decl.Pos()
		place.Place = fmt.Sprintf("%s:%d", code.File, files.Position(from).Line)
		if comment != nil {
			from = comment.Pos()
		}
		place.Text = string(source[files.Position(from).Offset:files.Position(decl.End()).Offset])
		break
	}
	return place
}

// declared is what a declaration is called: "Ledger.Do", "Response".
func declared(decl ast.Decl) (name string, comment *ast.CommentGroup) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		name = d.Name.Name
		if d.Recv != nil && len(d.Recv.List) == 1 {
			receiver := d.Recv.List[0].Type
			if pointer, is := receiver.(*ast.StarExpr); is {
				receiver = pointer.X
			}
			name = fmt.Sprint(receiver) + "." + name
		}
		return name, d.Doc
	case *ast.GenDecl:
		if len(d.Specs) == 1 {
			if spec, is := d.Specs[0].(*ast.TypeSpec); is {
				return spec.Name.Name, d.Doc
			}
		}
	}
	return "", nil
}

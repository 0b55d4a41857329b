package dataset

import (
	_ "embed"
	"strings"
)

// What users are told of each kind of URI; a kind without its text does not compile.
var (
	//go:embed formats/intro.md
	aboutAll string
	//go:embed formats/edges.md
	aboutEdges string
	//go:embed formats/table.md
	aboutTable string
	//go:embed formats/mtx.md
	aboutMatrixMarket string
	//go:embed formats/metis.md
	aboutMETIS string
	//go:embed formats/dimacs.md
	aboutDIMACS string
	//go:embed formats/adjlist.md
	aboutAdjacencyList string
	//go:embed formats/npz.md
	aboutNPZ string
	//go:embed formats/graphsaint.md
	aboutGraphSAINT string
	//go:embed formats/pyg.md
	aboutPyG string
	//go:embed formats/dgl.md
	aboutDGL string
	//go:embed formats/graphbolt.md
	aboutGraphBolt string
	//go:embed formats/mag240m.md
	aboutMAG240M string
	//go:embed formats/igb.md
	aboutIGB string
	//go:embed formats/ogb.md
	aboutOGB string
	//go:embed formats/graphland.md
	aboutGraphLand string
	//go:embed formats/planetoid.md
	aboutPlanetoid string
	//go:embed formats/karate.md
	aboutKarate string
	//go:embed formats/synthetic.md
	aboutSynthetic string
	//go:embed formats/papers100m.md
	aboutPapers string
)

// Format describes a kind of URI in Markdown.
type Format struct{ Name, Title, Text string }

// Formats describes all kinds of URI: what holds for all of them, then each. The
// whole is docs/formats.md.
func Formats() (intro string, kinds []Format) {
	for _, s := range schemes {
		heading, _, _ := strings.Cut(s.about, "\n")
		kinds = append(kinds, Format{s.name, strings.TrimPrefix(heading, "## "+s.name+": "), s.about})
	}
	return aboutAll, kinds
}

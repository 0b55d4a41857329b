package dataset

import (
	"context"
	"strings"

	"ndls/dataset/graph"
	"ndls/dataset/layout/dgl"
	"ndls/dataset/layout/graphbolt"
	"ndls/dataset/layout/graphsaint"
	"ndls/dataset/layout/memmap"
	"ndls/dataset/layout/npz"
	"ndls/dataset/layout/pyg"
	"ndls/dataset/table"
)

// scheme is a kind of URI.
type scheme struct {
	name, form string
	open       func(ctx context.Context, rest string, o Options) (Dataset, error)
	about      string // for users
}

// schemes are the known kinds of URI, in the order in which help lists them.
var schemes = []scheme{
	{"edges", "edges:FILE?features=F&labels=L&splits=S", openEdges, aboutEdges},
	{"table", "table:EDGES?src=C&dst=C&nodes=NODES&id=C&features=C,C,…&label=C&split=C", table.Open, aboutTable},
	{"mtx", "mtx:FILE?features=F&labels=L&splits=S", openForm("mtx"), aboutMatrixMarket},
	{"metis", "metis:FILE?…", openForm("metis"), aboutMETIS},
	{"dimacs", "dimacs:FILE?…", openForm("dimacs"), aboutDIMACS},
	{"adjlist", "adjlist:FILE?…", openForm("adjlist"), aboutAdjacencyList},
	{"npz", "npz:FILE?split=N", npz.Open, aboutNPZ},
	{"graphsaint", "graphsaint:DIR", graphsaint.Open, aboutGraphSAINT},
	{"pyg", "pyg:FILE?split=N", pyg.Open, aboutPyG},
	{"dgl", "dgl:DIR?relation=R", dgl.Open(parquetPairs), aboutDGL},
	{"graphbolt", "graphbolt:DIR", graphbolt.Open, aboutGraphBolt},
	{"mag240m", "mag240m:DIR", memmap.OpenMAG240M, aboutMAG240M},
	{"igb", "igb:DIR,size=S", memmap.OpenIGB, aboutIGB},
	{"ogb", "ogb:DIR", openOGB, aboutOGB},
	{"planetoid", "planetoid:DIR/NAME", openPlanetoid, aboutPlanetoid},
	{"karate", "karate:", openKarate, aboutKarate},
	{"synthetic", "synthetic:nodes=N,edges=M,…", openSynthetic, aboutSynthetic},
	{"papers100m", "papers100m:scale=1/N,seed=S", openPapers, aboutPapers},
}

// Open opens the dataset that uri names; [Formats] describes the forms.
// It reads what is needed to fill Info: headers, and label files once. Errors
// are [ErrURI], [ErrData], or those of the file system.
func Open(ctx context.Context, uri string, o Options) (Dataset, error) {
	name, rest, ok := strings.Cut(uri, ":")
	var forms []string
	for _, s := range schemes {
		if ok && s.name == name {
			return s.open(ctx, rest, o)
		}
		forms = append(forms, s.form)
	}
	return nil, graph.BadURI("%q is no dataset: the known forms are %s; `ndls help datasets` describes them", uri, strings.Join(forms, " · "))
}

package reproduce

import "slices"

// A recipe is how a row of a table gets its predictions: options of ndls run, of which some are
// chosen by validation.
type recipe struct {
	// options define the method. labels are the options of label smoothing, which take no part in
	// the search.
	options, labels string
	// search lists what is chosen by validation, in the form of ndls tune --try, beside what a
	// table has for all methods. It is fixed where nothing is chosen.
	search string
	// labelSearch lists what is chosen of label smoothing, by validation after it, beside its depth:
	// as many settings as of the network, which is chosen first.
	labelSearch string
	// program is the model of one of programs that is trained in place of the perceptron of ndls, "" for that.
	program string
}

const (
	// none are the options of a run without label smoothing.
	none = "--label-depth 0"
	// fixed says that nothing of a recipe is chosen.
	fixed = "fixed"
	// hopsOfNodes lists the choices of K.
	hopsOfNodes = "epsilon=0.01,0.03,0.05,0.1,0.2,0.3"
	// correction lists the choices of Correct & Smooth.
	correction = "cs-scale=auto,0.5,1,2 cs-correct-alpha=0.5,0.7,0.8,0.9,0.99 cs-smooth-alpha=0.5,0.7,0.8,0.9,0.99"
)

// recipes are the methods by name: a new one is one line.
//
// sign is the perceptron on hops side by side: its first layer is dense, where that of SIGN has a
// block for each hop. appnp propagates features before the perceptron, where APPNP propagates the
// outputs of its network while that is trained. authors is the recipe of the authors' released
// code, but for the depth of label smoothing, which is chosen by validation, not by test.
var recipes = map[string]recipe{
	"mlp":          {options: "--rule sgc --hops 0"},
	"mlp-cs":       {options: "--rule sgc --hops 0", labels: "--label-rule cs", labelSearch: correction},
	"mlp-cs-nd":    {options: "--rule sgc --hops 0", labels: "--label-rule cs-nd", labelSearch: correction + " label-" + hopsOfNodes},
	"mlp-ndls":     {options: "--rule sgc --hops 0", labelSearch: "label-rule=ndls,ndls-reference label-alpha=0.05,0.15,0.3 label-" + hopsOfNodes},
	"sgc":          {options: "--rule sgc", search: "hops=2,3,4,6,8"},
	"s2gc":         {options: "--rule s2gc", labels: none, search: "hops=4,8,16,32 alpha=0.05,0.1,0.2"},
	"gbp":          {options: "--rule gbp", labels: none, search: "hops=8,16,32 alpha=0.05,0.1,0.2"},
	"sign":         {options: "--rule sign", labels: none, search: "hops=2,3,4,5"},
	"appnp":        {options: "--rule appnp", labels: none, search: "hops=5,10,20 alpha=0.05,0.1,0.2"},
	"nafs":         {options: "--rule nafs", labels: none, search: "hops=2,4,8,16"},
	"ndls":         {options: "--rule ndls", search: hopsOfNodes + " residual=0,0.1,0.2"},
	"ndls-32":      {options: "--rule ndls --probes 32", search: hopsOfNodes + " residual=0,0.1,0.2"},
	"authors":      {options: "--lsi feature --r 0 --stationary global --kmax 199 --epsilon 0.03 --rule ndls-reference --dropout 0.5 --input-dropout 0.5 --lr 0.1 --epochs 200", labels: "--label-rule ndls-reference --label-epsilon 0.05", search: fixed},
	"forest":       {options: "--rule sgc --hops 0", program: "forest"},
	"forest-ndls":  {options: "--rule ndls", program: "forest"},
	"xgboost":      {options: "--rule sgc --hops 0", program: "xgboost"},
	"xgboost-ndls": {options: "--rule ndls", program: "xgboost"},
	"gcn":          peer("gcn"),
	"gat":          peer("gat"),
	"sage":         peer("sage"),
	"jknet":        peer("jknet"),
	"appnp-net":    peer("appnp"),
	"apgcn":        peer("apgcn"),
	"pprgo":        peer("pprgo"),
	"dagnn":        peer("dagnn"),
	"dagnn-ndls":   peer("dagnn-ndls"),
	"fastgcn":      peer("fastgcn"),
	"clustergcn":   peer("clustergcn"),
	"graphsaint":   peer("graphsaint"),
}

// peer is the recipe of a graph network, which reads the rows of features as they are.
func peer(model string) recipe { return recipe{options: "--rule sgc --hops 0", program: model} }

// peerRows are the rows of a network: alone, and with its soft labels smoothed by NDLS-L.
func peerRows(name, recipe, paper, smoothed string) []row {
	return []row{
		{name: name, recipe: recipe, peer: true, paper: paper},
		{name: name + " + NDLS-L", recipe: recipe, peer: true, smoothed: true, ours: true, aside: true, paper: smoothed},
	}
}

var transductivePeers = slices.Concat(
	peerRows("GCN", "gcn", "cora=81.8 citeseer=70.8 pubmed=79.3", ""),
	peerRows("GAT", "gat", "cora=83.0 citeseer=72.5 pubmed=79.0", ""),
	peerRows("JK-Net", "jknet", "cora=81.8 citeseer=70.7 pubmed=78.8", ""),
	peerRows("APPNP, trained through its hops", "appnp-net", "cora=83.3 citeseer=71.8 pubmed=80.1", ""),
	peerRows("AP-GCN", "apgcn", "cora=83.4 citeseer=71.3 pubmed=79.7", ""),
	peerRows("PPRGo", "pprgo", "cora=82.4 citeseer=71.3 pubmed=80.0", ""),
	peerRows("DAGNN", "dagnn", "cora=84.4 citeseer=73.3 pubmed=80.5", ""),
	[]row{{name: "DAGNN, its gate replaced by NDLS-L", recipe: "dagnn-ndls", peer: true, ours: true, aside: true, paper: "cora=84.4 citeseer=73.6 pubmed=80.9"}},
	samplingPeers,
)

// samplingPeers are the networks that the paper's inductive table has.
var samplingPeers = slices.Concat(
	peerRows("GraphSAGE", "sage", "flickr=50.1 reddit=95.4", "flickr=51.5 reddit=96.3"),
	peerRows("FastGCN", "fastgcn", "flickr=50.4 reddit=93.7", ""),
	peerRows("ClusterGCN", "clustergcn", "flickr=48.1 reddit=95.7", ""),
	peerRows("GraphSAINT", "graphsaint", "flickr=51.1 reddit=96.6", ""),
)

// slowPeers are the networks that the paper's table of times has.
var slowPeers = []row{
	{name: "JK-Net", recipe: "jknet", peer: true, paper: "*=11.42"},
	{name: "DAGNN", recipe: "dagnn", peer: true, paper: "*=14.39"},
	{name: "GCN", recipe: "gcn", peer: true, paper: "*=20.43"},
	{name: "APPNP, trained through its hops", recipe: "appnp-net", peer: true, paper: "*=28.88"},
	{name: "GAT", recipe: "gat", peer: true, paper: "*=33.23"},
}

// perceptron lists the choices of the network for every method of a table.
const perceptron = "dropout=0.2,0.4,0.6 input-dropout=0.2,0.4,0.6 lr=0.005,0.01,0.02 weight-decay=0.0001,0.0005,0.001"

// A row is a line of a table.
type row struct {
	// name is the name of the method as the table prints it, recipe the entry of recipes.
	name, recipe string
	// smoothed says that the figures are those after label smoothing, ours that the method
	// smooths by node. aside keeps the row out of the comparison of both kinds.
	smoothed, ours, aside bool
	// peer says that the row is a network of another paper, which a job has to ask for.
	peer bool
	// paper are the test accuracies that the paper reports, in %, by data set: "cora=84.1", or one for each condition, with commas
	// between them. "*" stands for all sets. Of a table of seconds it is the time relative to that of SGC.
	paper string
}

// condition is how data are changed, or divided, before all methods.
type condition struct {
	name, options string
}

// A grid is a table of accuracies, or of seconds: methods by data sets and conditions.
type grid struct {
	name, about string
	sets        []string
	// conditions are those under which each data set is used, nil for one, as it is.
	conditions []condition
	rows       []row
	// options are for all methods, before those of conditions and recipes. split are those that
	// divide sets whose published split is not inductive, "" for the split of the set.
	options, split string
	// search lists the choices of all methods, in addition to their recipes, and fixed the options
	// without choice.
	search string
	// inductive says that models are trained before anything of a test node is read.
	inductive bool
	// seconds says that the table shows the time of stages.
	seconds bool
	// notes stand below the table.
	notes []string
}

var treeRows = []row{
	{name: "random forest", recipe: "forest", paper: "pubmed=74.4"},
	{name: "random forest + NDLS-L", recipe: "forest", smoothed: true, ours: true, paper: "pubmed=80.0"},
	{name: "NDLS-F + random forest", recipe: "forest-ndls", ours: true, paper: "pubmed=80.3"},
	{name: "NDLS-F + random forest + NDLS-L", recipe: "forest-ndls", smoothed: true, ours: true, paper: "pubmed=80.5"},
	{name: "XGBoost", recipe: "xgboost", paper: "pubmed=74.1"},
	{name: "XGBoost + NDLS-L", recipe: "xgboost", smoothed: true, ours: true, paper: "pubmed=79.8"},
	{name: "NDLS-F + XGBoost", recipe: "xgboost-ndls", ours: true, paper: "pubmed=81.0"},
	{name: "NDLS-F + XGBoost + NDLS-L", recipe: "xgboost-ndls", smoothed: true, ours: true, paper: "pubmed=81.6"},
}

var smoothedRows = []row{
	{name: "MLP", recipe: "mlp", paper: "cora=61.1 citeseer=61.8 pubmed=72.7 papers100M=47.2"},
	{name: "SGC", recipe: "sgc", paper: "cora=81.0 citeseer=71.3 pubmed=78.9 papers100M=63.2"},
	{name: "S²GC", recipe: "s2gc", paper: "cora=82.7 citeseer=73.0 pubmed=79.9 papers100M=64.7"},
	{name: "GBP", recipe: "gbp", paper: "cora=83.9 citeseer=72.9 pubmed=80.6 papers100M=65.2"},
	{name: "SIGN", recipe: "sign", paper: "cora=82.1 citeseer=72.4 pubmed=79.5 papers100M=64.2"},
	{name: "APPNP", recipe: "appnp"},
	{name: "NAFS", recipe: "nafs"},
	{name: "NDLS-F", recipe: "ndls", ours: true, paper: "cora=84.1 citeseer=73.5 pubmed=81.1 papers100M=65.3"},
	{name: "NDLS-L", recipe: "mlp", smoothed: true, ours: true, paper: "cora=83.9 citeseer=73.1 pubmed=81.1 papers100M=64.6"},
	{name: "NDLS-F + NDLS-L", recipe: "ndls", smoothed: true, ours: true, paper: "cora=84.6 citeseer=73.7 pubmed=81.4 papers100M=65.6"},
	{name: "SGC + NDLS-L", recipe: "sgc", smoothed: true, ours: true, aside: true, paper: "cora=84.2 citeseer=73.4 pubmed=81.1 papers100M=64.9"},
	{name: "MLP + C&S", recipe: "mlp-cs", smoothed: true, aside: true, paper: "cora=76.7 citeseer=70.8 pubmed=76.5 papers100M=63.9"},
	{name: "MLP + C&S, K of each node", recipe: "mlp-cs-nd", smoothed: true, ours: true, aside: true, paper: "cora=79.9 citeseer=71.1 pubmed=78.4"},
}

var compared = []row{
	{name: "MLP", recipe: "mlp"},
	{name: "SGC", recipe: "sgc"},
	{name: "S²GC", recipe: "s2gc"},
	{name: "GBP", recipe: "gbp"},
	{name: "NDLS-F", recipe: "ndls", ours: true, paper: "flickr=51.9 reddit=96.6"},
	{name: "NDLS-L", recipe: "mlp", smoothed: true, ours: true},
	{name: "NDLS-F + NDLS-L", recipe: "ndls", smoothed: true, ours: true, paper: "flickr=52.6 reddit=96.8"},
}

// rates are shares of training nodes of all labelled nodes; a tenth validates.
var rates = []condition{
	{"2 %", "--split share:0.02,0.1"},
	{"5 %", "--split share:0.05,0.1"},
	{"10 %", "--split share:0.1,0.1"},
	{"20 %", "--split share:0.2,0.1"},
	{"40 %", "--split share:0.4,0.1"},
	{"60 %", "--split share:0.6,0.1"},
}

const (
	noteLabels  = "The options of C&S and of NDLS-L are chosen as those of the network are, by validation among as many settings, after the network."
	noteCS      = "C&S is not compared with the methods above it, because as many settings of label smoothing are chosen after those of its network; the table correct-and-smooth compares it with NDLS-L."
	noteSIGN    = "SIGN is the perceptron on hops side by side: its first layer is dense, where that of SIGN has a block for each hop."
	noteAuthors = "The authors' recipe has the settings of their code, and is not compared with methods whose settings are chosen here."
	noteAPPNP   = "APPNP propagates features before the perceptron; the paper's propagates the outputs of its network."
)

// grids are the tables: a new one is one entry.
var grids = []grid{
	{
		name: "base-models", about: "random forest and XGBoost, alone and with NDLS",
		sets: []string{"cora", "citeseer", "pubmed", "cora_ml", "coauthor_cs", "facebook"},
		rows: treeRows,
	},
	{
		name: "correct-and-smooth", about: "Correct & Smooth by label rate, with the same hops for all nodes and with K of each",
		sets:       []string{"cora", "citeseer", "pubmed", "cora_ml", "coauthor_cs", "facebook"},
		conditions: rates,
		rows: []row{
			{name: "MLP", recipe: "mlp"},
			{name: "MLP + C&S", recipe: "mlp-cs", smoothed: true, paper: "cora=62.8,76.7,82.8,84.9,86.4,87.2 citeseer=,,,,,76.6 pubmed=,,,,,88.3"},
			{name: "MLP + C&S, K of each node", recipe: "mlp-cs-nd", smoothed: true, ours: true},
			{name: "MLP + NDLS-L", recipe: "mlp-ndls", smoothed: true, ours: true, paper: "cora=77.4,83.9,85.3,86.5,87.6,88.1 citeseer=,,,,,78.3 pubmed=,,,,,88.5"},
		},
		search: perceptron,
		notes:  []string{noteLabels},
	},
	{
		name: "efficiency", about: "seconds of propagation and of training",
		sets: []string{"cora", "coauthor_cs", "facebook", "papers100M-shape", "papers100M"},
		rows: slices.Concat([]row{
			{name: "MLP", recipe: "mlp"},
			{name: "SGC", recipe: "sgc", paper: "*=1.00"},
			{name: "S²GC", recipe: "s2gc", paper: "*=1.19"},
			{name: "GBP", recipe: "gbp", paper: "*=1.20"},
			{name: "SIGN", recipe: "sign", paper: "*=1.59"},
			{name: "APPNP", recipe: "appnp"},
			{name: "NAFS", recipe: "nafs"},
			{name: "NDLS-F", recipe: "ndls", ours: true, paper: "*=1.50"},
			{name: "NDLS-F, 32 probes", recipe: "ndls-32", ours: true},
		}, slowPeers),
		options: "--hops 8 --epochs 100 --patience 0 --runs 1 " + none, search: fixed, seconds: true,
		notes: []string{"All methods but NDLS make 8 hops, and MLP none. Each trains one model for 100 epochs and predicts all nodes, without label smoothing. A run finds K whatever the rule is; the time for K counts where the method takes it. The paper has times on PubMed, with preprocessing, and with label smoothing for NDLS.", noteSIGN},
	},
	{
		name: "inductive", about: "accuracy on nodes that come after training",
		sets: []string{"cora", "cora_ml", "coauthor_cs", "facebook", "flickr", "reddit"},
		rows: slices.Concat(compared, samplingPeers), search: perceptron, inductive: true, split: "--split share:0.6,0.2",
		notes: []string{"Sets without a published inductive split are divided at random: 60 % of the labelled nodes train, 20 % validate. Settings are chosen on the graph of training and validation nodes."},
	},
	{
		name: "label-rates", about: "accuracy by the share of nodes that are trained on",
		sets: []string{"cora", "citeseer", "pubmed", "cora_ml"}, conditions: rates,
		rows: compared, search: perceptron,
	},
	{
		name: "sparsity", about: "accuracy with fewer features, edges and labels",
		sets: []string{"cora", "citeseer", "pubmed"},
		conditions: []condition{
			{"all", ""},
			{"features of 30 % blank", "--blank-features 0.3"},
			{"features of 60 % blank", "--blank-features 0.6"},
			{"features of 90 % blank", "--blank-features 0.9"},
			{"30 % of edges left out", "--drop-edges 0.3"},
			{"60 % of edges left out", "--drop-edges 0.6"},
			{"90 % of edges left out", "--drop-edges 0.9"},
			{"1 label a class", "--labels-per-class 1"},
			{"5 labels a class", "--labels-per-class 5"},
			{"10 labels a class", "--labels-per-class 10"},
		},
		rows: compared, search: perceptron,
	},
	{
		name: "transductive", about: "test accuracy of all methods, settings chosen by validation",
		sets:   []string{"cora", "citeseer", "pubmed", "cora_ml", "coauthor_cs", "facebook", "papers100M"},
		rows:   slices.Concat(smoothedRows, []row{{name: "NDLS, authors' recipe", recipe: "authors", smoothed: true, ours: true, aside: true}}, treeRows, transductivePeers),
		search: perceptron,
		notes:  []string{noteSIGN, noteAPPNP, noteAuthors, noteCS},
	},
}

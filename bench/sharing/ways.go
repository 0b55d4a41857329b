package main

// Changes that leave a way out.
var (
	noLists  = change{"group/lists.go", "workers > 1 && ReadShare(nodes, edges, workers) < listsPay", "false"}
	noRelay  = change{"spmv/window.go", "relays == 1 && holds == 0", "false && relays == 1"}
	noPanels = change{"placement/share.go", "if x.Panels > 1 {", "if x.Panels > 1 && false {"}
)

var (
	columns = []string{"--parallel", "columns"}
	rows    = []string{"--parallel", "intervals"}
	grid    = []string{"--parallel", "grid"}
)

// ways lists what is measured.
var ways = []way{
	{name: "relay", edges: 10, features: 16, least: 4, share: rows, with: []change{noLists}, without: []change{noLists, noRelay}},
	{name: "lists of 20 edges a row", edges: 10, features: 16, least: 16, share: rows, without: []change{noLists}},
	{name: "lists of 4 edges a row", edges: 2, features: 16, least: 4, share: rows, without: []change{noLists}},
	{name: "groups of panels", edges: 10, features: 16, least: 2, share: grid, without: []change{noPanels}},
	{name: "grid or columns", edges: 10, features: 16, least: 2, share: grid, plain: columns},
}

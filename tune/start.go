package tune

import (
	"math"
	"slices"
	"strconv"

	"ndls"
)

// published are the settings with which the paper of a rule, or its authors' code, trains on Cora: those of the rule
// itself, and those of the network. A number of hops that is not there is not stated. A rule that is not there begins
// with the defaults alone.
//
//   - ndls, ndls-reference: train.py of the authors' code (github.com/zwt233/NDLS)
//   - sgc: args.py of the authors' code (github.com/Tiiiger/SGC), which trains a linear model
//   - s2gc: args_cora.py of the authors' code (github.com/allenhaozhu/SSGC), which trains a linear model
//   - gbp: transductive.sh and citation.py of the authors' code (github.com/chennnM/GBP)
//   - appnp: Gasteiger et al., 2019, section 5
var published = map[string]struct{ rule, network map[string]string }{
	"ndls":           {map[string]string{"epsilon": "0.03", "residual": "0"}, ownNetwork},
	"ndls-reference": {map[string]string{"epsilon": "0.03", "alpha": "0.15"}, ownNetwork},
	"sgc": {
		map[string]string{"hops": "2"},
		map[string]string{"dropout": "0", "input-dropout": "0", "lr": "0.2", "weight-decay": "5e-06"},
	},
	"s2gc": {
		map[string]string{"hops": "16", "alpha": "0.05"},
		map[string]string{"dropout": "0", "input-dropout": "0", "lr": "0.2", "weight-decay": "1e-05"},
	},
	"gbp": {
		map[string]string{"alpha": "0.1"},
		map[string]string{"hidden": "64", "dropout": "0.5", "input-dropout": "0.5", "lr": "0.01", "weight-decay": "0.0005"},
	},
	"appnp": {
		map[string]string{"hops": "10", "alpha": "0.1"},
		map[string]string{"hidden": "64", "dropout": "0.5", "input-dropout": "0.5", "lr": "0.01", "weight-decay": "0.005"},
	},
}

// ownNetwork is the network of the authors of NDLS.
var ownNetwork = map[string]string{"hidden": "64", "dropout": "0.5", "input-dropout": "0.5", "lr": "0.1", "weight-decay": "0.0005"}

// starts are the first trials of a random search, alike for each rule that is tried: all rules with the network of base,
// and the settings of the rule that are published; then with the published network, too. Where that value of
// an option is not tried, it is the nearest one that is.
func (s Space) starts(base ndls.Options) (list [][]Setting) {
	names := []string{base.Smooth.Rule}
	if i := slices.IndexFunc(s, func(d Dimension) bool { return d.Name == "rule" }); i >= 0 {
		names = s[i].Values
	}
	for _, network := range []bool{false, true} {
		for _, rule := range names {
			known := published[rule]
			if network && known.network == nil {
				continue
			}
			var start []Setting
			for _, d := range s {
				want, ok := known.rule[d.Name]
				if network && !ok {
					want, ok = known.network[d.Name]
				}
				if d.Name == "rule" {
					want, ok = rule, true
				}
				if !ok {
					want = base.InForce(d.Name)
				}
				start = append(start, Setting{d.Name, d.nearest(want)})
			}
			list = append(list, start)
		}
	}
	return list
}

// nearest is the value that is tried and nearest to one that is wanted: that one, if it is tried; of numbers the
// one that differs least, and of equals the first one; otherwise the first one.
func (d Dimension) nearest(want string) string {
	x, err := strconv.ParseFloat(want, 64)
	if d.Values == nil {
		if err != nil {
			x = d.Lo
		}
		return strconv.FormatFloat(min(max(x, d.Lo), d.Hi), 'g', -1, 64)
	}
	if slices.Contains(d.Values, want) {
		return want
	}
	best, least := d.Values[0], math.Inf(1)
	for _, v := range d.Values {
		y, other := strconv.ParseFloat(v, 64)
		if err == nil && other == nil && math.Abs(x-y) < least {
			best, least = v, math.Abs(x-y)
		}
	}
	return best
}

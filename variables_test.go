package ndls

import (
	"slices"
	"testing"
)

func TestVariables(t *testing.T) {
	for option, want := range map[string]string{"memory": "NDLS_MEMORY", "label-kmax": "NDLS_LABEL_KMAX", "data": "", "python": ""} {
		if got := Variable(option); got != want {
			t.Errorf("--%s has the variable %q, not %q", option, got, want)
		}
	}
	before := []string{"PATH=/bin", "NDLS_TOKEN=secret", "NDLS_RESULT=r.json", "NDLS_PYTHON=python3", "NDLS_LISTEN=0.0.0.0:1", "NDLSX=1"}
	want := []string{"PATH=/bin", "NDLS_TOKEN=secret", "NDLS_PYTHON=python3", "NDLSX=1"}
	if got := withoutOptions(before); !slices.Equal(got, want) || len(before) != 6 {
		t.Errorf("a worker process gets %q", got)
	}
}

package check

import (
	"bytes"
	"encoding/json"
	"maps"
	"os/exec"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"
)

const chart = "../../helm/ndls"

// charts are releases of the Helm chart that are checked as the overlays are: the name of
// the release, and values.
var charts = map[string][]string{
	"helm":       {"ndls", "--set=image.tag=latest"},
	"helm-s3":    {"ndls", "--set=image.tag=latest,volume.enabled=false"},
	"helm-other": {"other", "--set=workers=7,worker.memory=24,worker.threads=6,worker.scratch=200,coordinator.memory=3,coordinator.scratch=5,volume.size=900,volume.storageClass=nfs,image.pullPolicy=Always,image.pullSecrets={one},keysSecret=k,objectStoreSecret=o,nodeSelector.disk=nvme,tolerations[0].operator=Exists"},
}

// helm is the program that `make helm` installs. Without a cluster it has to be told of one.
func helm(verb string, args ...string) (string, error) {
	cmd := exec.Command("../../../.tools/bin/helm", append([]string{verb, "--kube-version=1.29"}, args...)...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		out = append(out, errs.String()...)
	}
	return string(out), err
}

// rendered are the objects of a release as JSON.
func rendered(t testing.TB, args ...string) [][]byte {
	t.Helper()
	out, err := helm("template", append([]string{args[0], chart}, args[1:]...)...)
	if err != nil {
		t.Fatalf("helm template %q: %v\n%s", args, err, out)
	}
	var docs [][]byte
	for _, text := range strings.Split("\n"+out, "\n---\n")[1:] {
		doc, err := yaml.YAMLToJSONStrict([]byte(text))
		if err != nil {
			t.Fatalf("helm template %q: %v\n%s", args, err, text)
		}
		docs = append(docs, doc)
	}
	return docs
}

func TestChartIsSound(t *testing.T) {
	for name, args := range charts {
		if out, err := helm("lint", append([]string{"--strict", chart}, args[1:]...)...); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	// What is no value, or none of those that may be.
	for _, wrong := range []string{"wokers=3", "workers=0", "workers=many", "worker.memory=8Gi", "volume.sizes=3", "image.tags=1", "job.run=/elsewhere/run", "job.dataset=null"} {
		if _, err := helm("template", "ndls", chart, "--set="+wrong); err == nil {
			t.Errorf("--set=%s is not refused", wrong)
		}
	}
}

// TestChartHasTheObjectsOfTheManifests keeps the two from growing apart.
func TestChartHasTheObjectsOfTheManifests(t *testing.T) {
	for release, overlay := range map[string]string{"helm": "jobs", "helm-s3": "s3"} {
		want, got := plainObjects(t, overlay), plainObjects(t, release)
		if a, b := slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)); !slices.Equal(a, b) {
			t.Errorf("%s has %q, and %s has %q", release, a, overlay, b)
		}
		for name := range want {
			if !reflect.DeepEqual(got[name], want[name]) {
				a, _ := json.MarshalIndent(got[name], "", " ")
				b, _ := json.MarshalIndent(want[name], "", " ")
				for i, line := range bytes.Split(a, []byte("\n")) {
					if lines := bytes.Split(b, []byte("\n")); i >= len(lines) || !bytes.Equal(line, lines[i]) {
						t.Errorf("%s of %s has %q where the one of %s has %q", name, release, line, overlay, lines[min(i, len(lines)-1)])
						break
					}
				}
			}
		}
	}
}

// plainObjects are the objects of an overlay without what tells releases of a chart apart, by kind and name.
func plainObjects(t *testing.T, overlay string) map[string]any {
	t.Helper()
	objects := map[string]any{}
	for _, doc := range documents(t, overlay) {
		var o map[string]any
		if err := json.Unmarshal(doc, &o); err != nil {
			t.Fatal(err)
		}
		metadata := o["metadata"].(map[string]any)
		delete(metadata, "labels")
		delete(metadata, "annotations")
		objects[o["kind"].(string)+" "+metadata["name"].(string)] = plain(t, o)
	}
	return objects
}

// plain writes what may be written in several ways in one, and leaves out the label of a release.
func plain(t *testing.T, tree any) any {
	t.Helper()
	switch node := tree.(type) {
	case []any:
		for i := range node {
			node[i] = plain(t, node[i])
		}
	case map[string]any:
		delete(node, "app.kubernetes.io/instance")
		for key, value := range node {
			if text, ok := value.(string); ok && key == "job.yaml" {
				var options any
				if err := yaml.Unmarshal([]byte(text), &options); err != nil {
					t.Fatal(err)
				}
				node[key] = options
				continue
			}
			node[key] = plain(t, value)
		}
	case string:
		if size, ok := strings.CutPrefix(node, "--memory="); ok {
			bytes, err := resource.ParseQuantity(strings.TrimSuffix(size, "B"))
			if err != nil {
				t.Fatal(err)
			}
			return "--memory=" + strconv.FormatInt(bytes.Value(), 10)
		}
	}
	return tree
}

package check

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// overlays lists what a user applies: folders, and releases of the chart.
var overlays = append([]string{"jobs", "jobset", "s3"}, slices.Sorted(maps.Keys(charts))...)

// cluster is the cluster for which an overlay asks.
type cluster struct {
	services   map[string]*corev1.Service
	configMaps map[string]*corev1.ConfigMap
	claims     map[string]*corev1.PersistentVolumeClaim
	jobs       map[string]*batchv1.Job
	jobSets    map[string]*jobSet
}

// documents are the objects of an overlay as JSON, built as by kubectl kustomize or helm.
func documents(t testing.TB, overlay string) [][]byte {
	t.Helper()
	if release, ok := charts[overlay]; ok {
		return rendered(t, release...)
	}
	objects, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), "../"+overlay)
	if err != nil {
		t.Fatalf("kustomize build %s: %v", overlay, err)
	}
	var docs [][]byte
	for _, o := range objects.Resources() {
		text, err := o.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		doc, err := yaml.YAMLToJSONStrict(text)
		if err != nil {
			t.Fatalf("%s: %v", o.CurId(), err)
		}
		docs = append(docs, doc)
	}
	return docs
}

func load(t testing.TB, overlay string) cluster {
	t.Helper()
	c := cluster{
		map[string]*corev1.Service{},
		map[string]*corev1.ConfigMap{},
		map[string]*corev1.PersistentVolumeClaim{},
		map[string]*batchv1.Job{},
		map[string]*jobSet{},
	}
	for _, doc := range documents(t, overlay) {
		object, err := decode(doc)
		if err != nil {
			t.Fatalf("%s: %v", overlay, err)
		}
		switch o := object.(type) {
		case *corev1.Service:
			c.services[o.Name] = o
		case *corev1.ConfigMap:
			c.configMaps[o.Name] = o
		case *corev1.PersistentVolumeClaim:
			c.claims[o.Name] = o
		case *batchv1.Job:
			c.jobs[o.Name] = o
		case *jobSet:
			c.jobSets[o.Name] = o
		}
	}
	return c
}

// decode refuses unknown and repeated fields; names are case-sensitive.
func decode(doc []byte) (any, error) {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := json.UnmarshalCaseSensitivePreserveInts(doc, &head); err != nil {
		return nil, err
	}
	var object any
	switch id := head.APIVersion + " " + head.Kind; id {
	case "v1 Service":
		object = new(corev1.Service)
	case "v1 ConfigMap":
		object = new(corev1.ConfigMap)
	case "v1 PersistentVolumeClaim":
		object = new(corev1.PersistentVolumeClaim)
	case "batch/v1 Job":
		object = new(batchv1.Job)
	case "jobset.x-k8s.io/v1alpha2 JobSet":
		object = new(jobSet)
	default:
		return nil, fmt.Errorf("unexpected object %q", id)
	}
	strict, err := json.UnmarshalStrict(doc, object)
	return object, errors.Join(append(strict, err)...)
}

// pod is one of the pods that the Job controller would make.
type pod struct {
	role   string
	job    batchv1.JobSpec
	name   string // of the host, too
	index  int
	domain string // the service that names it
	labels map[string]string
	spec   corev1.PodSpec
}

// container is the only one.
func (p pod) container() corev1.Container { return p.spec.Containers[0] }

// pods lists the coordinator first.
func (c cluster) pods() []pod {
	var pods []pod
	add := func(name, domain string, job batchv1.JobSpec) {
		for i := range int(*job.Completions) {
			p := pod{job: job, name: name + "-" + strconv.Itoa(i), index: i, domain: domain, labels: job.Template.Labels, spec: job.Template.Spec}
			p.role = p.labels["app.kubernetes.io/component"]
			pods = append(pods, p)
		}
	}
	for name, job := range c.jobs {
		add(name, job.Spec.Template.Spec.Subdomain, job.Spec)
	}
	for name, set := range c.jobSets {
		for _, r := range set.Spec.ReplicatedJobs {
			for i := range int(r.Replicas) {
				add(name+"-"+r.Name+"-"+strconv.Itoa(i), set.Spec.Network.Subdomain, r.Template.Spec)
			}
		}
	}
	slices.SortFunc(pods, func(a, b pod) int {
		if a.role != b.role {
			return map[string]int{"coordinator": -1, "worker": 1}[a.role]
		}
		return a.index - b.index
	})
	return pods
}

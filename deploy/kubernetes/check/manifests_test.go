package check

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"
)

func TestOverlays(t *testing.T) {
	for overlay, want := range map[string][]string{
		"jobs":       {"Job ndls-coordinator", "Job ndls-worker", "Service ndls", "ConfigMap ndls-job", "PersistentVolumeClaim ndls-data"},
		"jobset":     {"JobSet ndls", "ConfigMap ndls-job", "PersistentVolumeClaim ndls-data"},
		"s3":         {"Job ndls-coordinator", "Job ndls-worker", "Service ndls", "ConfigMap ndls-job"},
		"helm-other": {"Job other-coordinator", "Job other-worker", "Service other", "ConfigMap other-job", "PersistentVolumeClaim other-data"},
	} {
		t.Run(overlay, func(t *testing.T) {
			var got []string
			for _, doc := range documents(t, overlay) {
				if _, err := decode(doc); err != nil {
					t.Error(err)
				}
				var o struct {
					Kind     string
					Metadata struct{ Name string }
				}
				if err := json.Unmarshal(doc, &o); err != nil {
					t.Fatal(err)
				}
				got = append(got, o.Kind+" "+o.Metadata.Name)
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("objects %q, want %q", got, want)
			}
		})
	}
}

// TestMisspeltFieldIsRefused misspells every field of every object, one at a time.
func TestMisspeltFieldIsRefused(t *testing.T) {
	fields := 0
	for _, overlay := range overlays {
		for _, doc := range documents(t, overlay) {
			var tree any
			if err := json.Unmarshal(doc, &tree); err != nil {
				t.Fatal(err)
			}
			misspell(tree, "", func(path string) {
				fields++
				wrong, err := json.Marshal(tree)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := decode(wrong); err == nil {
					t.Errorf("%s: %s is not refused", overlay, path)
				}
			})
		}
	}
	if fields < 100 {
		t.Errorf("only %d fields were tried", fields)
	}
}

// freeForm are the fields whose keys are the user's.
var freeForm = []string{"labels", "matchLabels", "selector", "nodeSelector", "annotations", "data", "requests", "limits"}

// misspell calls try with every key of tree misspelt, by a letter or in case.
func misspell(tree any, path string, try func(path string)) {
	switch node := tree.(type) {
	case []any:
		for i, child := range node {
			misspell(child, path+"["+strconv.Itoa(i)+"]", try)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(node)) {
			value := node[key]
			for _, wrong := range []string{key + "s", strings.ToUpper(key[:1]) + key[1:]} {
				delete(node, key)
				node[wrong] = value
				try(path + "." + wrong)
				delete(node, wrong)
				node[key] = value
			}
			if !slices.Contains(freeForm, key) {
				misspell(value, path+"."+key, try)
			}
		}
	}
}

// TestReferences holds what refers to each other in an overlay together.
func TestReferences(t *testing.T) {
	keys := t.TempDir()
	run(t, "cluster-keys", "--out", filepath.Join(keys, "keys"))
	for _, overlay := range overlays {
		t.Run(overlay, func(t *testing.T) {
			c := load(t, overlay)
			pods := c.pods()
			if len(pods) < 3 || pods[0].role != "coordinator" || pods[1].role != "worker" {
				t.Fatalf("%d pods, want a coordinator and workers", len(pods))
			}
			for _, p := range pods {
				t.Run(p.name, func(t *testing.T) {
					checkVolumes(t, c, p, filepath.Join(keys, "keys"))
					checkNetwork(t, c, p, pods[0])
					checkResources(t, p)
					checkEnvironment(t, p, pods)
					checkSecurity(t, p)
					checkFailure(t, p)
				})
			}
			for name, service := range c.services {
				checkService(t, name, service, pods)
			}
		})
	}
}

func checkVolumes(t *testing.T, c cluster, p pod, keys string) {
	t.Helper()
	volumes := map[string]corev1.Volume{}
	for _, v := range p.spec.Volumes {
		volumes[v.Name] = v
	}
	mounted := map[string]bool{}
	for _, m := range p.container().VolumeMounts {
		mounted[m.Name] = true
		v, ok := volumes[m.Name]
		if !ok {
			t.Errorf("mount %s has no volume", m.Name)
		}
		if v.ConfigMap != nil && c.configMaps[v.ConfigMap.Name].Data[m.SubPath] == "" {
			t.Errorf("ConfigMap %s has no %q", v.ConfigMap.Name, m.SubPath)
		}
	}
	for name, v := range volumes {
		if !mounted[name] {
			t.Errorf("volume %s is not mounted", name)
		}
		if v.PersistentVolumeClaim != nil && c.claims[v.PersistentVolumeClaim.ClaimName] == nil {
			t.Errorf("there is no claim %s", v.PersistentVolumeClaim.ClaimName)
		}
		if v.Secret != nil {
			for _, item := range v.Secret.Items {
				if _, err := os.Stat(filepath.Join(keys, item.Key)); err != nil {
					t.Errorf("ndls cluster-keys makes no %s", item.Key)
				}
			}
		}
	}
	for _, claim := range c.claims {
		if !slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteMany) {
			t.Errorf("claim %s is not for several nodes", claim.Name)
		}
	}
}

// flagValue is the value of --name=VALUE, "" if it is not given.
func flagValue(p pod, name string) string {
	for _, arg := range p.container().Args {
		if value, ok := strings.CutPrefix(arg, "--"+name+"="); ok {
			return value
		}
	}
	return ""
}

func portNamed(p pod, name string) int32 {
	for _, port := range p.container().Ports {
		if port.Name == name {
			return port.ContainerPort
		}
	}
	return 0
}

func checkNetwork(t *testing.T, c cluster, p, coordinator pod) {
	t.Helper()
	if len(c.jobSets) == 0 && c.services[p.domain] == nil {
		t.Errorf("there is no service %q for the pod's subdomain", p.domain)
	}
	listens := map[string]string{"listen": "control", "gossip-listen": "gossip-udp", "http": "status"}
	if p.role == "worker" {
		listens = map[string]string{"listen": "gossip-udp"}
	}
	for flag, port := range listens {
		if value := flagValue(p, flag); value != "" && value != fmt.Sprintf("$(POD_IP):%d", portNamed(p, port)) {
			t.Errorf("--%s=%s, and port %s is %d", flag, value, port, portNamed(p, port))
		}
	}
	if p.role == "worker" {
		want := fmt.Sprintf("%s.%s:%d", coordinator.name, coordinator.domain, portNamed(coordinator, "control"))
		if got := flagValue(p, "coordinator"); got != want {
			t.Errorf("--coordinator=%s, and the coordinator is %s", got, want)
		}
	}
	for _, probe := range []*corev1.Probe{p.container().LivenessProbe, p.container().ReadinessProbe} {
		if probe != nil && (portNamed(p, "status") == 0 || probe.HTTPGet.Port.StrVal != "status") {
			t.Errorf("a probe is for port %s, which serves no HTTP", probe.HTTPGet.Port.String())
		}
	}
}

func checkService(t *testing.T, name string, service *corev1.Service, pods []pod) {
	t.Helper()
	if service.Spec.ClusterIP != corev1.ClusterIPNone || !service.Spec.PublishNotReadyAddresses {
		t.Errorf("service %s does not give every pod a name from its start", name)
	}
	targets := map[intstr.IntOrString]bool{}
	for _, p := range pods {
		for key, value := range service.Spec.Selector {
			if p.labels[key] != value {
				t.Errorf("service %s does not select %s", name, p.name)
			}
		}
		for _, port := range p.container().Ports {
			targets[intstr.FromString(port.Name)] = true
		}
	}
	for _, port := range service.Spec.Ports {
		if !targets[port.TargetPort] {
			t.Errorf("service %s: no pod has port %s", name, port.TargetPort.String())
		}
	}
}

func checkResources(t *testing.T, p pod) {
	t.Helper()
	r := p.container().Resources
	if !reflect.DeepEqual(r.Requests, r.Limits) {
		t.Error("requests are not the limits")
	}
	// Kubernetes writes Gi, ndls GiB.
	memory, err := resource.ParseQuantity(strings.TrimSuffix(flagValue(p, "memory"), "B"))
	if err != nil || memory.Cmp(*r.Limits.Memory()) >= 0 || memory.IsZero() {
		t.Errorf("--memory=%s with a limit of %s", flagValue(p, "memory"), r.Limits.Memory())
	}
	if threads := flagValue(p, "threads"); threads != r.Limits.Cpu().String() {
		t.Errorf("--threads=%s on %s CPUs", threads, r.Limits.Cpu())
	}
	for _, v := range p.spec.Volumes {
		if v.EmptyDir != nil && (v.EmptyDir.SizeLimit == nil || v.EmptyDir.SizeLimit.Cmp(*r.Limits.StorageEphemeral()) >= 0) {
			t.Errorf("volume %s may take %s of %s", v.Name, v.EmptyDir.SizeLimit, r.Limits.StorageEphemeral())
		}
	}
}

// checkEnvironment wants every variable to be read: by the arguments, the program,
// or the Go runtime.
func checkEnvironment(t *testing.T, p pod, pods []pod) {
	t.Helper()
	if *p.job.Completions != *p.job.Parallelism || *p.job.CompletionMode != batchv1.IndexedCompletion {
		t.Errorf("completions %d, parallelism %d, mode %s", *p.job.Completions, *p.job.Parallelism, *p.job.CompletionMode)
	}
	args := strings.Join(p.container().Args, " ")
	set := map[string]string{}
	for _, e := range p.container().Env {
		set[e.Name] = e.Value
		if !strings.Contains(args, "$("+e.Name+")") && e.Name != "TMPDIR" && !inProgram(t, strconv.Quote(e.Name)) {
			t.Errorf("nothing reads %s", e.Name)
		}
	}
	for _, m := range regexp.MustCompile(`\$\((\w+)\)`).FindAllStringSubmatch(args, -1) {
		if _, ok := set[m[1]]; !ok {
			t.Errorf("%s is not set", m[0])
		}
	}
	if workers := flagValue(p, "workers"); workers != "" && workers != strconv.Itoa(len(pods)-1) {
		t.Errorf("--workers=%s, and there are %d", workers, len(pods)-1)
	}
}

// inProgram reports whether the source of ndls has a text.
func inProgram(t *testing.T, text string) bool {
	t.Helper()
	found := false
	for _, dir := range []string{"cmd", "internal"} {
		err := filepath.WalkDir(filepath.Join("../../..", dir), func(path string, d os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			source, err := os.ReadFile(path)
			found = found || strings.Contains(string(source), text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

func checkSecurity(t *testing.T, p pod) {
	t.Helper()
	if s := p.spec.SecurityContext; !*s.RunAsNonRoot || *s.RunAsUser == 0 || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("the pod may be root: %+v", s)
	}
	s := p.container().SecurityContext
	if !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) {
		t.Errorf("the container may do more than it needs: %+v", s)
	}
	if p.spec.AutomountServiceAccountToken == nil || *p.spec.AutomountServiceAccountToken {
		t.Error("the pod gets a token for the API")
	}
}

// action returns the action of the Job controller for an exit status.
func action(job batchv1.JobSpec, status int32) batchv1.PodFailurePolicyAction {
	for _, rule := range job.PodFailurePolicy.Rules {
		if rule.OnExitCodes != nil && slices.Contains(rule.OnExitCodes.Values, status) {
			return rule.Action
		}
	}
	return batchv1.PodFailurePolicyActionCount
}

func checkFailure(t *testing.T, p pod) {
	t.Helper()
	for status, want := range map[int32]batchv1.PodFailurePolicyAction{
		1: batchv1.PodFailurePolicyActionCount, 137: batchv1.PodFailurePolicyActionCount,
		75: batchv1.PodFailurePolicyActionIgnore,
		2:  batchv1.PodFailurePolicyActionFailJob, 3: batchv1.PodFailurePolicyActionFailJob,
		4: batchv1.PodFailurePolicyActionFailJob, 5: batchv1.PodFailurePolicyActionFailJob,
	} {
		if got := action(p.job, status); got != want {
			t.Errorf("exit status %d: %s, want %s", status, got, want)
		}
	}
	for _, rule := range p.job.PodFailurePolicy.Rules {
		if rule.OnExitCodes != nil && *rule.OnExitCodes.ContainerName != p.container().Name {
			t.Errorf("a rule is for container %s", *rule.OnExitCodes.ContainerName)
		}
	}
	if p.spec.RestartPolicy != corev1.RestartPolicyNever {
		t.Errorf("restartPolicy %s, and podFailurePolicy wants Never", p.spec.RestartPolicy)
	}
}

// TestJobSetHasThePodsOfTheJobs keeps the two from growing apart.
func TestJobSetHasThePodsOfTheJobs(t *testing.T) {
	jobs, set := load(t, "jobs").pods(), load(t, "jobset").pods()
	if len(jobs) != len(set) {
		t.Fatalf("%d and %d pods", len(jobs), len(set))
	}
	for i := range jobs {
		want, err := yaml.Marshal(jobs[i].job)
		if err != nil {
			t.Fatal(err)
		}
		got, err := yaml.Marshal(set[i].job)
		if err != nil {
			t.Fatal(err)
		}
		// The service is the JobSet's, and its Jobs are numbered.
		expected := strings.ReplaceAll(string(want), "    subdomain: "+jobs[i].domain+"\n", "")
		expected = strings.ReplaceAll(expected, jobs[0].name+"."+jobs[0].domain, set[0].name+"."+set[0].domain)
		wantLines, gotLines := strings.Split(expected, "\n"), strings.Split(string(got), "\n")
		for n := range min(len(wantLines), len(gotLines)) {
			if gotLines[n] != wantLines[n] {
				t.Fatalf("%s has %q where %s has %q", set[i].name, gotLines[n], jobs[i].name, wantLines[n])
			}
		}
		if len(wantLines) != len(gotLines) {
			t.Errorf("%s has %d lines, %s %d", set[i].name, len(gotLines), jobs[i].name, len(wantLines))
		}
	}
}

package check

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// host runs pods as containers without a container runtime: a mount and host name space and a
// changed root each, which holds the content of the image (one file), what the kubelet adds
// (/etc/hosts, /proc, /sys, /dev) and the volumes.
type host struct {
	dir     string
	c       cluster
	pods    []pod
	secrets map[string]string // folder of each
}

// container is a pod that runs.
type container struct {
	cmd  *exec.Cmd
	log  *lockedBuffer
	done chan struct{}
	err  error // when done
}

// ip is a pod's address: Linux has all of 127.0.0.0/8 on loopback.
func (h *host) ip(p pod) string {
	for i := range h.pods {
		if h.pods[i].name == p.name {
			return fmt.Sprintf("127.0.0.%d", i+2)
		}
	}
	panic("no such pod: " + p.name)
}

// script gets the root, then pairs of source and target to mount, "--", and the command.
const script = `set -eu
root=$1 host=$2; shift 2
hostname "$host"
mount --bind "$root" "$root"
for dir in proc sys dev; do mount --rbind "/$dir" "$root/$dir"; done
while [ "$1" != -- ]; do mount --bind "$1" "$root/$2"; shift 2; done
shift
mount -o remount,ro,bind "$root"
exec "$@"`

// start runs a pod's container.
func (h *host) start(t *testing.T, p pod) *container {
	t.Helper()
	root, err := os.MkdirTemp(h.dir, p.name)
	if err != nil {
		t.Fatal(err)
	}
	must(t, os.Chmod(root, 0o755))
	for _, dir := range []string{"proc", "sys", "dev", "etc"} {
		must(t, os.Mkdir(filepath.Join(root, dir), 0o755))
	}
	must(t, os.Link(binary, filepath.Join(root, "ndls")))
	must(t, os.WriteFile(filepath.Join(root, "etc/hosts"), h.hosts(), 0o644))

	args := []string{"--mount", "--uts", "--propagation", "private", "sh", "-c", script, "sh", root, p.name}
	args = append(args, h.mounts(t, root, p)...)
	vars := h.environment(p)
	args = append(args, "--", "env", "-i")
	for name, value := range vars {
		args = append(args, name+"="+value)
	}
	chroot, err := exec.LookPath("chroot")
	must(t, err)
	s := p.spec.SecurityContext
	args = append(args, chroot, "--groups=", fmt.Sprintf("--userspec=%d:%d", *s.RunAsUser, *s.RunAsGroup), root, "/ndls")
	for _, arg := range p.container().Args {
		args = append(args, expand(arg, vars))
	}
	c := &container{cmd: exec.Command("unshare", args...), log: new(lockedBuffer), done: make(chan struct{})}
	c.cmd.Stdout, c.cmd.Stderr = c.log, c.log
	must(t, c.cmd.Start())
	go func() {
		c.err = c.cmd.Wait()
		close(c.done)
	}()
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill()
		<-c.done
		if t.Failed() {
			t.Logf("%s:\n%s", p.name, c.log)
		}
	})
	return c
}

// hosts has the names that the headless service gives.
func (h *host) hosts() []byte {
	var b bytes.Buffer
	for _, p := range h.pods {
		fmt.Fprintf(&b, "%s %s.%s\n", h.ip(p), p.name, p.domain)
	}
	return b.Bytes()
}

// mounts lists source and target of each volume, and makes both.
func (h *host) mounts(t *testing.T, root string, p pod) []string {
	t.Helper()
	group := int(*p.spec.SecurityContext.FSGroup)
	folder := func(path string) string {
		must(t, os.MkdirAll(path, 0o775))
		must(t, os.Chown(path, 0, group))
		must(t, os.Chmod(path, 0o2775))
		return path
	}
	sources := map[string]string{}
	for _, v := range p.spec.Volumes {
		switch {
		case v.PersistentVolumeClaim != nil:
			sources[v.Name] = folder(filepath.Join(h.dir, v.PersistentVolumeClaim.ClaimName))
		case v.EmptyDir != nil:
			sources[v.Name] = folder(root + "." + v.Name)
		case v.ConfigMap != nil:
			dir := folder(root + "." + v.Name)
			for name, text := range h.c.configMaps[v.ConfigMap.Name].Data {
				must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
			}
			sources[v.Name] = dir
		case v.Secret != nil:
			dir := folder(root + "." + v.Name)
			for _, item := range v.Secret.Items {
				text, err := os.ReadFile(filepath.Join(h.secrets[v.Secret.SecretName], item.Key))
				must(t, err)
				path := filepath.Join(dir, item.Path)
				must(t, os.WriteFile(path, text, 0o600))
				must(t, os.Chown(path, 0, group))
				must(t, os.Chmod(path, os.FileMode(*v.Secret.DefaultMode)))
			}
			sources[v.Name] = dir
		}
	}
	var pairs []string
	for _, m := range p.container().VolumeMounts {
		source, target := filepath.Join(sources[m.Name], m.SubPath), filepath.Join(root, m.MountPath)
		if m.SubPath == "" {
			must(t, os.MkdirAll(target, 0o755))
		} else {
			must(t, os.MkdirAll(filepath.Dir(target), 0o755))
			must(t, os.WriteFile(target, nil, 0o644))
		}
		pairs = append(pairs, source, m.MountPath)
	}
	return pairs
}

// environment returns the environment of the container: what the manifest sets and what Kubernetes
// adds.
func (h *host) environment(p pod) map[string]string {
	vars := map[string]string{
		"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOSTNAME": p.name, "HOME": "/",
		"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443",
		"JOB_COMPLETION_INDEX": strconv.Itoa(p.index),
	}
	for _, e := range p.container().Env {
		switch {
		case e.ValueFrom == nil:
			vars[e.Name] = expand(e.Value, vars)
		case e.ValueFrom.FieldRef.FieldPath == "status.podIP":
			vars[e.Name] = h.ip(p)
		}
	}
	return vars
}

// expand does with $(NAME) what the kubelet does.
func expand(text string, vars map[string]string) string {
	return regexp.MustCompile(`\$\((\w+)\)`).ReplaceAllStringFunc(text, func(ref string) string {
		if value, ok := vars[strings.Trim(ref, "$()")]; ok {
			return value
		}
		return ref
	})
}

// url returns the URL of a path on the pod's status port.
func (h *host) url(p pod, path string) string {
	return fmt.Sprintf("http://%s:%d%s", h.ip(p), portNamed(p, "status"), path)
}

// status is the exit status of a container that has ended.
func (c *container) status() int32 { return int32(c.cmd.ProcessState.ExitCode()) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// lockedBuffer can be read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"ndls"
)

// TestPasswordsAreNotShown: no command shows a password that a URI holds, wherever it stands in it.
func TestPasswordsAreNotShown(t *testing.T) {
	const secret = "PASSWORD"
	result := filepath.Join(t.TempDir(), "result.json")
	for _, uri := range []string{
		"s3://b/p?endpoint=http://u:" + secret + "@127.0.0.1:1&region=r",
		"s3://b/p?endpoint=http%3A%2F%2Fu%3A" + secret + "%40127.0.0.1%3A1&region=r",
		"s3://u:" + secret + "@b/p",
		"s3://b/p?secret_access_key=" + secret + "&region=r",
		"s3://b/p?region=r&endpoint=http://127.0.0.1:1&token=" + secret,
		"gs://u:" + secret + "@b/p",
	} {
		for _, args := range [][]string{
			{"run", "--dataset", toy, "--run", uri},
			{"run", "--dataset", toy, "--run", uri, "--workers", "2"},
			{"run", "--dataset", "table:" + uri, "--run", filepath.Join(t.TempDir(), "run")},
			{"inspect", "--run", uri},
			{"inspect", "--dataset", "table:" + uri},
			{"list", uri},
			{"report", uri, "--out", filepath.Join(t.TempDir(), "x.html")},
			{"diff", uri, uri},
			{"verify", "--run", uri},
			{"gc", "--run", uri},
			{"status", "--run", uri},
			{"export", "--run", uri, "--what", "lsi", "--format", "csv", "--out", filepath.Join(t.TempDir(), "x.csv")},
			{"infer", "--run", uri, "--dataset", toy, "--out", filepath.Join(t.TempDir(), "x.csv")},
		} {
			r := command(t, append(args, "--result", result)...)
			text, err := os.ReadFile(result)
			if r.code == 0 || err != nil || strings.Contains(r.stdout+r.stderr+string(text), secret) {
				t.Errorf("%v: status %d, %v\n%s%s%s", args, r.code, err, r.stdout, r.stderr, text)
			}
		}
	}
}

// TestTinyFeatures: features below the smallest normal float32 lose places in each hop, and are smoothed all the same.
func TestTinyFeatures(t *testing.T) {
	dir := t.TempDir()
	var edges, features, arcs, labels strings.Builder
	for i := range 300 {
		fmt.Fprintf(&edges, "%d %d 0.3\n%d %d 1.7\n", i, (i+1)%300, i, i*7%300)
		fmt.Fprintf(&arcs, "%d %d\n%d %d\n", i, (i+1)%300, i, i*7%300)
		fmt.Fprintf(&labels, "%d,%d\n", i, i%3)
		fmt.Fprintf(&features, "%d,1e-44,%de-45,%de-40,%d\n", i, i%90, i, i)
	}
	weighted := write(t, filepath.Join(dir, "w.txt"), edges.String())
	plain := write(t, filepath.Join(dir, "e.txt"), arcs.String())
	classes := write(t, filepath.Join(dir, "l.csv"), labels.String())
	rows := write(t, filepath.Join(dir, "f.csv"), features.String())
	for i, tc := range []struct{ uri, args string }{
		{plain + "?features=", ""},
		{plain + "?features=", "--precision float16"},
		{plain + "?features=", "--rule sgc --hops 20"},
		{plain + "?directed=true&features=", "--rule sgc --hops 20"},
		{weighted + "?weight=3&features=", "--rule sgc --hops 20"},
	} {
		args := append([]string{"run", "--epochs", "2", "--runs", "1", "--dataset", "edges:" + tc.uri + rows + "&labels=" + classes, "--run", filepath.Join(dir, fmt.Sprint(i)), "--quiet", "--normalize", "none"}, strings.Fields(tc.args)...)
		if r := command(t, args...); r.code != 0 {
			t.Errorf("%s %s: status %d\n%s", tc.uri, tc.args, r.code, r.stderr)
		}
	}
}

// wouldDo is the --memory that a message names.
var wouldDo = regexp.MustCompile(`--memory (\d+MiB) is enough`)

// TestNamedMemoryWouldDo: a command that does not fit says with which --memory it would, and then it does.
func TestNamedMemoryWouldDo(t *testing.T) {
	whole(t)
	dir := t.TempDir()
	var rows strings.Builder
	rows.WriteString("src,dst\n")
	for i := range 700_000 {
		fmt.Fprintf(&rows, "a-node-of-a-name-%d,a-node-of-a-name-%d\n", i, (i+1)%700_000)
	}
	table := "table:" + write(t, filepath.Join(dir, "e.csv"), rows.String())
	for _, args := range [][]string{
		{"inspect", "--dataset", table},
		{"partition", "--dataset", table, "--run", filepath.Join(dir, "run")},
		{"run", "--dataset", toy, "--run", filepath.Join(dir, "workers"), "--workers", "3", "--epochs", "1", "--runs", "1"},
		{"verify", "--run", filepath.Join(dir, "run"), "--memory", "64MiB"},
		{"list", dir, "--memory", "64MiB"},
	} {
		memory := "128MiB"
		if n := len(args); args[n-2] == "--memory" {
			memory, args = args[n-1], args[:n-2]
		}
		steps := 0
		for ; steps < 3; steps++ {
			r := command(t, append(args, "--quiet", "--memory", memory)...)
			if r.code == 0 {
				break
			}
			said := wouldDo.FindStringSubmatch(r.stderr)
			if r.code != ndls.ExitBudget || said == nil {
				t.Fatalf("%v --memory %s: status %d\n%s", args, memory, r.code, r.stderr)
			}
			t.Logf("%s: %s", args[0], strings.TrimSpace(r.stderr))
			memory = said[1]
		}
		if steps == 3 {
			t.Errorf("%v does not fit in what was named, %s", args, memory)
		}
	}
}

// TestVerifyStaysWithinMemory: verify takes no more than its --memory, also with many threads.
func TestVerifyStaysWithinMemory(t *testing.T) {
	whole(t)
	run := filepath.Join(t.TempDir(), "run")
	expect(t, 0, "", "partition", "--quiet", "--memory", "1GiB", "--run", run,
		"--dataset", "synthetic:nodes=3000000,edges=6000000,features=16,classes=4,seed=1", "--interval-blocks", "1")
	cmd := exec.Command(binary, "verify", "--quiet", "--run", run, "--memory", "128MiB", "--threads", "32")
	if peak := peakOf(t, cmd); peak > 128 {
		t.Errorf("verify took %d MiB of 128", peak)
	}
}

// peakOf runs a command and returns the most memory that it has taken, in MiB, as the kernel says until its end.
func peakOf(t *testing.T, cmd *exec.Cmd) (peak int) {
	t.Helper()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
		if found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(text); found != nil {
			kib, _ := strconv.Atoi(string(found[1]))
			peak = max(peak, kib>>10)
		}
		select {
		case err := <-ended:
			if err != nil || peak == 0 {
				t.Fatalf("%v, peak %d\n%s", err, peak, &out)
			}
			t.Logf("%s: peak %d MiB", strings.Join(cmd.Args[1:], " "), peak)
			return peak
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// TestFalseCoordinator: a worker does not work for who has no certificate of its job, and sends it nothing.
func TestFalseCoordinator(t *testing.T) {
	run := filepath.Join(t.TempDir(), "run")
	expect(t, 0, "", "partition", "--dataset", toy, "--run", run, "--memory", "512MiB", "--quiet")
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"coordinator.ndls", "worker.ndls", "localhost"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}}, ClientAuth: tls.RequestClientCert, NextProtos: []string{"h2"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	heard := make(chan int, 100)
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			n, _ := io.Copy(io.Discard, c)
			heard <- int(n)
			_ = c.Close()
		}
	}()
	cmd := exec.Command(binary, "worker", "--run", run, "--coordinator", listener.Addr().String(), "--wait", "20s", "--memory", "512MiB")
	cmd.Env = append(os.Environ(), ndls.TokenVariable+"="+token)
	begun := time.Now()
	text, _ := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != ndls.ExitMismatch || !strings.Contains(string(text), "the coordinator's certificate is not of this job") || time.Since(begun) > 15*time.Second {
		t.Errorf("status %d after %v\n%s", code, time.Since(begun), text)
	}
	if n := <-heard; n > 0 || strings.Contains(string(text), token) {
		t.Errorf("the false coordinator got %d bytes\n%s", n, text)
	}
}

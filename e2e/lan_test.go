package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// lan is an Ethernet of hosts, each a network namespace with its own address. Its
// switch is this process, so that cables can be cut and frames lost, by a seed, and be
// slow.
type lan struct {
	t     *testing.T
	hosts []*host

	mu    sync.Mutex
	rng   *rand.Rand
	loss  float64 // share of all frames
	ports map[[6]byte]*host
	// delay is the time of a frame on its way, rate the bytes a second that a cable carries in each
	// direction; 0 is at once.
	delay time.Duration
	rate  float64
}

// host is one end of a cable.
type host struct {
	lan     *lan
	space   string
	address string
	port    *os.File
	cut     cut // mu of the lan is held
	dropped int
	// sends and receives are until when the cable is busy, arriving the frames that are on
	// their way to the host.
	sends, receives time.Time
	arriving        chan frame
}

// frame holds what arrives at a host, and when.
type frame struct {
	data []byte
	at   time.Time
}

const (
	// queue is the time for which a cable may be busy with what a host has sent before more is
	// lost.
	queue = 100 * time.Millisecond
	// longestQueue is the number of frames that may be on their way to a host.
	longestQueue = 4096
)

// cut says what a cable does not carry.
type cut int

const (
	nothing cut = iota
	datagrams
	everything
)

// capabilities that namespaces and their devices take.
var capabilities = map[string]uint{"CAP_NET_ADMIN": unix.CAP_NET_ADMIN, "CAP_SYS_ADMIN": unix.CAP_SYS_ADMIN}

// lacking says what these tests are without, "" for nothing. Root in a container may
// have the capabilities, and be refused what they are for: so it is tried.
var lacking = sync.OnceValue(func() string {
	status, _ := os.ReadFile("/proc/self/status")
	_, after, _ := strings.Cut(string(status), "CapEff:\t")
	line, _, _ := strings.Cut(after, "\n")
	have, _ := strconv.ParseUint(line, 16, 64)
	for name, bit := range capabilities {
		if have&(1<<bit) == 0 {
			return name + ": run as root"
		}
	}
	space := fmt.Sprintf("ndls-%x", rand.Uint64())
	if out, err := exec.Command("ip", "netns", "add", space).CombinedOutput(); err != nil {
		return fmt.Sprintf("network namespaces: ip netns add: %v %s", err, out)
	}
	defer func() { _ = exec.Command("ip", "netns", "del", space).Run() }()
	card, err := tap(fmt.Sprintf("ndls%x", rand.Uint32()))
	if err != nil {
		return err.Error()
	}
	_ = card.Close()
	dir, err := os.MkdirTemp("", "ndls-lacking")
	if err != nil {
		return err.Error()
	}
	defer func() { _ = os.Remove(dir) }()
	if err := syscall.Mount("ndls", dir, "tmpfs", 0, "size=64k"); err != nil {
		return fmt.Sprint("small disks: ", err)
	}
	_ = syscall.Unmount(dir, syscall.MNT_DETACH)
	return ""
})

// privileged skips a test that needs networks and disks of its own.
func privileged(t *testing.T) {
	t.Helper()
	if what := lacking(); what != "" {
		t.Skipf("needs %s", what)
	}
}

// tap makes an Ethernet card; what it sends is read from the file.
func tap(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("/dev/net/tun: %w", err)
	}
	card, err := unix.NewIfreq(name)
	if err != nil {
		return nil, err
	}
	card.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, card); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("an Ethernet card: %w", err)
	}
	return os.NewFile(uintptr(fd), "/dev/net/tun"), nil
}

// newLan joins n hosts, 10.77.0.1 and on.
func newLan(t *testing.T, n int, seed uint64) *lan {
	t.Helper()
	privileged(t)
	l := &lan{t: t, rng: rand.New(rand.NewPCG(seed, 1)), ports: map[[6]byte]*host{}}
	var pumps, deliveries sync.WaitGroup
	t.Cleanup(func() {
		for _, h := range l.hosts {
			_ = h.port.Close()
		}
		pumps.Wait()
		for _, h := range l.hosts {
			close(h.arriving)
		}
		deliveries.Wait()
		for _, h := range l.hosts {
			_ = exec.Command("ip", "netns", "del", h.space).Run()
		}
	})
	for i := range n {
		h := &host{lan: l, space: fmt.Sprintf("ndls-%d-%x", i, rand.Uint64()), address: fmt.Sprintf("10.77.0.%d", i+1), arriving: make(chan frame, longestQueue)}
		ip(t, "netns", "add", h.space)
		l.hosts = append(l.hosts, h)
		h.plug()
		ip(t, "-n", h.space, "addr", "add", h.address+"/24", "dev", "eth0")
		ip(t, "-n", h.space, "link", "set", "eth0", "up")
		ip(t, "-n", h.space, "link", "set", "lo", "up")
	}
	for _, h := range l.hosts {
		pumps.Go(h.pump)
		deliveries.Go(h.deliver)
	}
	return l
}

func ip(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// plug gives the host an Ethernet card whose cable ends here.
func (h *host) plug() {
	t := h.lan.t
	t.Helper()
	name := fmt.Sprintf("ndls%x", rand.Uint32())
	port, err := tap(name)
	if err != nil {
		t.Fatal(err)
	}
	h.port = port
	ip(t, "link", "set", name, "netns", h.space)
	ip(t, "-n", h.space, "link", "set", name, "name", "eth0")
}

// pump passes on what the host sends.
func (h *host) pump() {
	data := make([]byte, 1<<16)
	for {
		n, err := h.port.Read(data)
		if errors.Is(err, os.ErrClosed) {
			return
		}
		if err != nil || n < 14 {
			continue // the card is down, or has no address yet
		}
		for _, to := range h.lan.route(h, data[:n]) {
			if !h.lan.post(h, to, data[:n]) {
				_, _ = to.port.Write(data[:n]) // a full queue loses frames, as it does
			}
		}
	}
}

// post puts a frame on its way where cables are slow, and says so. A queue that is full loses
// it.
func (l *lan) post(from, to *host, data []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rate == 0 {
		return false
	}
	now, takes := time.Now(), time.Duration(float64(len(data))/l.rate*float64(time.Second))
	if from.sends.Sub(now) > queue || to.receives.Sub(now) > l.delay+queue {
		return true
	}
	from.sends = latest(now, from.sends).Add(takes)
	to.receives = latest(from.sends.Add(l.delay), to.receives.Add(takes))
	select {
	case to.arriving <- frame{bytes.Clone(data), to.receives}:
	default:
	}
	return true
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// deliver hands the frames to the host when they arrive.
func (h *host) deliver() {
	for f := range h.arriving {
		time.Sleep(time.Until(f.at))
		_, _ = h.port.Write(f.data)
	}
}

// slow makes all cables carry so many bits a second in each direction, and each frame arrive
// so much later.
func (l *lan) slow(delay time.Duration, bits float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delay, l.rate = delay, bits/8
}

// dial connects to an address as a process of the host would.
func (h *host) dial(ctx context.Context, address string) (conn net.Conn, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		space, openErr := os.Open(filepath.Join("/var/run/netns", h.space))
		if err = openErr; err != nil {
			return
		}
		defer space.Close()
		if err = unix.Setns(int(space.Fd()), unix.CLONE_NEWNET); err != nil {
			return
		}
		var d net.Dialer
		conn, err = d.DialContext(ctx, "tcp", address)
	}()
	<-done
	return conn, err
}

// route says who gets a frame: whom it is for, or all others.
func (l *lan) route(from *host, frame []byte) (to []*host) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ports[[6]byte(frame[6:12])] = from
	receivers := l.hosts
	if h := l.ports[[6]byte(frame[:6])]; h != nil {
		receivers = []*host{h}
	}
	for _, h := range receivers {
		switch {
		case h == from:
		case from.loses(frame) || h.loses(frame) || l.rng.Float64() < l.loss:
			from.dropped++
		default:
			to = append(to, h)
		}
	}
	return to
}

func (h *host) loses(frame []byte) bool {
	const ipv4, udp = "\x08\x00", 17
	switch h.cut {
	case everything:
		return true
	case datagrams:
		return len(frame) > 23 && bytes.Equal(frame[12:14], []byte(ipv4)) && frame[23] == udp
	}
	return false
}

// lose makes all cables lose a share of frames.
func (l *lan) lose(share float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.loss = share
}

// set cuts a cable, or mends it.
func (h *host) set(c cut) {
	h.lan.mu.Lock()
	defer h.lan.mu.Unlock()
	h.cut = c
}

// lost counts the frames that did not arrive.
func (l *lan) lost() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.hosts {
		n += h.dropped
	}
	return n
}

// command starts the program on the host. Its process id equals that of the program.
func (h *host) command(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", h.space, binary}, args...)...)
}

// free is a free port of the host.
func (h *host) free() string { return net.JoinHostPort(h.address, "0") }

package member

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
	"go.uber.org/goleak"
)

// patience is the time that a test waits for news. Loaded machines need most of it.
const patience = 30 * time.Second

// TestMain finds what the groups leave behind. memberlist's probes and timers end
// on their own, a few seconds after its shutdown.
func TestMain(m *testing.M) {
	code := m.Run()
	err := goleak.Find()
	for end := time.Now().Add(patience); err != nil && time.Now().Before(end); {
		err = goleak.Find()
	}
	if code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// quick reports deaths after about two seconds.
func quick(c *memberlist.Config) {
	c.ProbeInterval, c.ProbeTimeout = 400*time.Millisecond, 300*time.Millisecond
	c.SuspicionMult, c.SuspicionMaxTimeoutMult = 3, 2
	c.GossipInterval, c.PushPullInterval = 50*time.Millisecond, time.Second
	c.TCPTimeout = 2 * time.Second
}

// diary remembers who died.
type diary struct {
	mu   sync.Mutex
	dead []string
}

func (d *diary) note(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dead = append(d.dead, name)
}

// has reports whether a member was said to be dead.
func (d *diary) has(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Contains(d.dead, name)
}

// forget begins the diary anew.
func (d *diary) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dead = nil
}

// others are the names of the other members that a group sees.
func others(g *Group) (names []string) {
	for _, m := range g.list.Members() {
		if m.Name != g.name {
			names = append(names, m.Name)
		}
	}
	return names
}

// sees reports whether a group sees another member.
func sees(g, other *Group) bool { return slices.Contains(others(g), other.name) }

func seedsOf(groups ...*Group) func(context.Context) ([]string, error) {
	var addresses []string
	for _, g := range groups {
		addresses = append(addresses, g.Address())
	}
	return func(context.Context) ([]string, error) { return addresses, nil }
}

// join joins on loopback at test speed, and falls silent at the test's end.
func join(t *testing.T, o Options) (*Group, *diary) {
	t.Helper()
	d := &diary{}
	if o.Bind == "" {
		o.Bind = "127.0.0.1:0"
	}
	o.seekEvery, o.Dead = 100*time.Millisecond, d.note
	if o.configure == nil {
		o.configure = quick
	}
	g, err := Join(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.shutdown)
	return g, d
}

// four joins a coordinator and three workers and waits until all see all.
func four(t *testing.T) ([]*Group, []*diary) {
	t.Helper()
	groups, diaries := make([]*Group, 4), make([]*diary, 4)
	groups[0], diaries[0] = join(t, Options{})
	for i := 1; i < 4; i++ {
		groups[i], diaries[i] = join(t, Options{Seeds: seedsOf(groups[0])})
	}
	for i, g := range groups {
		eventually(t, fmt.Sprintf("member %d sees three others", i), func() bool { return len(others(g)) == 3 })
	}
	return groups, diaries
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

func TestLeavingIsToldFromDeath(t *testing.T) {
	t.Parallel()
	groups, diaries := four(t)
	groups[1].Drain()
	groups[1].Drain() // the second time is nothing new
	groups[1].Leave()
	groups[1].Leave() // nothing more happens
	groups[1].Drain()
	groups[2].shutdown()
	for _, i := range []int{0, 3} {
		eventually(t, "the one that fell silent is dead", func() bool { return diaries[i].has(groups[2].name) })
		eventually(t, "one other is left", func() bool { return len(others(groups[i])) == 1 })
		if diaries[i].has(groups[1].name) {
			t.Errorf("member %d takes the one that left for dead", i)
		}
	}
}

// TestCloseWaitsForNobody has members that send no news: a goodbye would wait for
// all of its time.
func TestCloseWaitsForNobody(t *testing.T) {
	t.Parallel()
	mute := func(c *memberlist.Config) {
		quick(c)
		c.GossipInterval = time.Hour
	}
	coordinator, news := join(t, Options{configure: mute})
	worker, _ := join(t, Options{configure: mute, Seeds: seedsOf(coordinator)})
	eventually(t, "the worker is there", func() bool { return sees(coordinator, worker) })
	begun := time.Now()
	worker.Close()
	worker.Close() // nothing more happens
	worker.Leave()
	worker.Drain()
	if took := time.Since(begun); took >= leaveTimeout {
		t.Errorf("it took %v to close", took)
	}
	eventually(t, "it is dead", func() bool { return news.has(worker.name) })
}

// lines is a log that can be read while it is written.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) contain(s string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.buf.String(), s)
}

func TestWrongKeyIsRefused(t *testing.T) {
	t.Parallel()
	right, wrong := bytes.Repeat([]byte{1}, keySize), bytes.Repeat([]byte{2}, keySize)
	coordinator, _ := join(t, Options{Key: right})
	for name, key := range map[string][]byte{"another key": wrong, "no key": nil} {
		log := &lines{}
		stranger, _ := join(t, Options{Key: key, Seeds: seedsOf(coordinator), Log: slog.New(slog.NewTextHandler(log, nil))})
		eventually(t, name+" is told why", func() bool { return log.contain("no seed of the group answers") })
		if got := others(stranger); len(got) != 0 {
			t.Errorf("with %s: members %v", name, got)
		}
	}
	friend, _ := join(t, Options{Key: right, Seeds: seedsOf(coordinator)})
	eventually(t, "the right key is admitted", func() bool { return len(others(friend)) == 1 })
	if got := others(coordinator); len(got) != 1 || got[0] != friend.name {
		t.Errorf("members %v, want the friend alone", got)
	}
}

func TestSeedRestartedElsewhere(t *testing.T) {
	t.Parallel()
	var seed atomic.Pointer[Group]
	var asked atomic.Int32
	log := &lines{}
	worker, d := join(t, Options{
		Log: slog.New(slog.NewTextHandler(log, nil)),
		Seeds: func(context.Context) ([]string, error) {
			asked.Add(1)
			if g := seed.Load(); g != nil {
				return []string{g.Address()}, nil
			}
			return nil, errors.New("no coordinator yet")
		},
	})
	eventually(t, "seeds are asked for again", func() bool { return asked.Load() > 2 })
	first, _ := join(t, Options{})
	seed.Store(first)
	eventually(t, "the seed is found", func() bool { return sees(worker, first) })
	settled := asked.Load()
	first.shutdown()
	second, _ := join(t, Options{})
	seed.Store(second)
	eventually(t, "the new seed is found", func() bool { return sees(worker, second) })
	eventually(t, "the old one is dead", func() bool { return d.has(first.name) })
	eventually(t, "the new seed sees the worker", func() bool { return sees(second, worker) })
	if asked.Load() == settled {
		t.Error("the new seed was found without asking")
	}
	for _, line := range []string{"no coordinator yet", "a seed of the group answers"} {
		if !log.contain(line) {
			t.Errorf("the log lacks %q", line)
		}
	}
}

// cable is a network that can be pulled out of one member.
type cable struct {
	memberlist.NodeAwareTransport
	pulled *atomic.Bool
}

var errPulled = errors.New("the cable is pulled")

func (c cable) WriteTo(b []byte, addr string) (time.Time, error) {
	return c.WriteToAddress(b, memberlist.Address{Addr: addr})
}

// WriteToAddress loses packets in silence, as networks do.
func (c cable) WriteToAddress(b []byte, a memberlist.Address) (time.Time, error) {
	if c.pulled.Load() {
		return time.Now(), nil
	}
	return c.NodeAwareTransport.WriteToAddress(b, a)
}

func (c cable) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	return c.DialAddressTimeout(memberlist.Address{Addr: addr}, timeout)
}

func (c cable) DialAddressTimeout(a memberlist.Address, timeout time.Duration) (net.Conn, error) {
	if c.pulled.Load() {
		return nil, errPulled
	}
	return c.NodeAwareTransport.DialAddressTimeout(a, timeout)
}

// TestFlappingMember cuts a pair of members off each other, again and again: each
// time one is dead for the other, and back under its name.
func TestFlappingMember(t *testing.T) {
	t.Parallel()
	var pulled atomic.Bool
	wired := func(c *memberlist.Config) {
		quick(c)
		transport, err := memberlist.NewNetTransport(&memberlist.NetTransportConfig{
			BindAddrs: []string{"127.0.0.1"}, Logger: slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo),
		})
		if err != nil {
			t.Error(err)
			return
		}
		c.Transport = cable{transport, &pulled}
	}
	coordinator, news := join(t, Options{configure: wired})
	worker, _ := join(t, Options{configure: wired, Seeds: seedsOf(coordinator)})
	for range 2 {
		eventually(t, "the worker is there", func() bool { return sees(coordinator, worker) })
		pulled.Store(true)
		eventually(t, "the worker is dead", func() bool { return news.has(worker.name) })
		eventually(t, "nobody is left", func() bool { return len(others(coordinator)) == 0 })
		news.forget()
		pulled.Store(false)
	}
	eventually(t, "the worker is back", func() bool { return sees(coordinator, worker) })
}

func TestJoinRefuses(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, tc := range []struct {
		name string
		o    Options
		want string
	}{
		{"short key", Options{Bind: "127.0.0.1:0", Key: []byte("secret")}, "6 bytes, not 32"},
		{"no port", Options{Bind: "127.0.0.1"}, `address "127.0.0.1"`},
		{"port in use", Options{Bind: taken.Addr().String()}, "in use"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Join(t.Context(), tc.o)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v, want one with %q", err, tc.want)
			}
		})
	}
}

func TestNamesAreFresh(t *testing.T) {
	a, b := NewName(), NewName()
	if a == b {
		t.Errorf("two names are %q", a)
	}
}

func TestCalmSettingsSurviveSaturatedCores(t *testing.T) {
	c := calm()
	if c.ProbeTimeout >= c.ProbeInterval {
		t.Errorf("a probe of %v overlaps the next after %v", c.ProbeTimeout, c.ProbeInterval)
	}
	if silence := time.Duration(c.SuspicionMult) * c.ProbeInterval; silence < 10*time.Second {
		t.Errorf("a silence of %v is death: a busy worker is silent for longer", silence)
	}
}

// TestNamedHere: names of this host are told from those of hosts whose names begin alike.
func TestNamedHere(t *testing.T) {
	host := hostname()
	for name, want := range map[string]bool{
		NewName(): true, host + "-1-abcdefgh": true,
		host + "-1-2-abcdefgh": false, host + "-b-1-abcdefgh": false, host + "x-1-abcdefgh": false,
		host: false, host + "-": false, host + "-1": false, host + "-1-": false, "x-1-abcdefgh": false, "cache": false, "": false,
	} {
		if got := NamedHere(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}

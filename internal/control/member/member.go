package member

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

// keySize is the key size of AES-256, in bytes.
const keySize = 32

// draining is told by a member that is about to leave; others tell nothing of themselves.
const draining = "draining"

// Options says who joins and how the others are found.
type Options struct {
	// Name must be one that no process has had; "" makes one with NewName. A worker leases tasks
	// under the same name, so that its death can be matched to its leases.
	Name string
	// Bind is host:port for gossip over UDP and TCP; port 0 picks a free one. If the host stands
	// for all interfaces, the first private address is announced.
	Bind string
	// Seeds returns host:port of members to join; it is nil if others come to this one. It is
	// called again whenever they are not among the members.
	Seeds func(ctx context.Context) ([]string, error)
	// Key is 32 bytes that all members share, or nil for plain text.
	Key []byte
	// Dead is called with the name of each member that fell silent without saying that it leaves, in order, one at a time,
	// until Leave or Close. It may call the group, but not Leave or Close.
	Dead func(name string)
	Log  *slog.Logger

	// The other fields serve tests: the pace of seeking, and changes to the calm settings.
	seekEvery time.Duration
	configure func(*memberlist.Config)
}

// Group is one process's view of all members.
type Group struct {
	name, address string
	list          *memberlist.Memberlist
	log           *slog.Logger
	cancel        context.CancelFunc
	owned         sync.WaitGroup

	mu       sync.Mutex
	draining bool
	left     bool
	// dead holds the members of which Dead was not told yet. Callbacks of memberlist run under its
	// locks, so they only queue.
	dead []string
	wake chan struct{}
}

// NewName makes a name for this process start: host, process id, 8 random
// characters.
func NewName() string {
	return fmt.Sprintf("%s-%d-%s", hostname(), os.Getpid(), strings.ToLower(rand.Text()[:randomChars]))
}

// randomChars is the number of random characters at the end of a name.
const randomChars = 8

func hostname() string {
	host, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return host
}

// NamedHere reports whether NewName made a name on this host, in this process or another.
func NamedHere(name string) bool {
	rest, ok := strings.CutPrefix(name, hostname()+"-")
	pid, random, both := strings.Cut(rest, "-")
	_, err := strconv.Atoi(pid)
	return ok && both && err == nil && len(random) == randomChars && !strings.Contains(random, "-")
}

// Join listens for gossip and begins to look for the seeds, without waiting for them. It fails for
// invalid options, and if it cannot listen. When ctx ends, it stops looking for seeds and calling
// Dead; the process remains a member until Leave or Close.
func Join(ctx context.Context, o Options) (*Group, error) {
	if o.Key != nil && len(o.Key) != keySize {
		return nil, fmt.Errorf("member: the gossip key has %d bytes, not %d", len(o.Key), keySize)
	}
	bind, err := net.ResolveTCPAddr("tcp", o.Bind)
	if err != nil {
		return nil, fmt.Errorf("member: address %q to listen on for gossip: %w", o.Bind, err)
	}
	if o.Name == "" {
		o.Name = NewName()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.seekEvery == 0 {
		o.seekEvery = seekEvery
	}
	g := &Group{name: o.Name, log: o.Log, wake: make(chan struct{}, 1)}
	c := calm()
	c.Name, c.SecretKey = o.Name, o.Key
	c.BindAddr, c.BindPort = "0.0.0.0", bind.Port
	if bind.IP != nil {
		c.BindAddr = bind.IP.String()
	}
	c.AdvertisePort = bind.Port
	c.Delegate, c.Events = delegate{g}, delegate{g}
	c.LogOutput = logWriter{o.Log}
	if o.configure != nil {
		o.configure(c)
	}
	if g.list, err = create(c); err != nil {
		return nil, fmt.Errorf("member: listen for gossip on %s: %w", o.Bind, err)
	}
	g.address = g.list.LocalNode().Address()
	ctx, g.cancel = context.WithCancel(ctx)
	if o.Seeds != nil {
		g.owned.Go(func() { g.seek(ctx, o.Seeds, o.seekEvery) })
	}
	if o.Dead != nil {
		g.owned.Go(func() { g.deliver(ctx, o.Dead) })
	}
	return g, nil
}

// Address returns host:port for the Seeds of others.
func (g *Group) Address() string { return g.address }

// Drain announces that this member is about to leave, and waits at most a few seconds for the news
// to be sent.
func (g *Group) Drain() {
	g.mu.Lock()
	announced := g.draining || g.left
	g.draining = true
	g.mu.Unlock()
	if announced {
		return
	}
	if err := g.list.UpdateNode(leaveTimeout); err != nil {
		g.log.Info("members may take this one for dead", "reason", err)
	}
}

// Leave drains, tells the others that this member leaves, and ends the group, as Close does. That
// takes a second or two, and twice leaveTimeout if the others leave at the same time and receive
// nothing any more.
func (g *Group) Leave() {
	g.Drain()
	if !g.leaves() {
		return
	}
	if err := g.list.Leave(leaveTimeout); err != nil {
		g.log.Info("members may take this one for dead", "reason", err)
	}
	g.shutdown()
}

// Close ends the group without a message, for use when the others end too. Dead is not called
// after it returns. It takes up to ten seconds if it is connecting to a seed that does not answer.
// After Leave or Close, both do nothing.
func (g *Group) Close() {
	if g.leaves() {
		g.shutdown()
	}
}

// leaves reports whether the group was not left before.
func (g *Group) leaves() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	first := !g.left
	g.left = true
	return first
}

// shutdown stops all gossip.
func (g *Group) shutdown() {
	g.cancel()
	if err := g.list.Shutdown(); err != nil {
		g.log.Info("gossip did not shut down", "reason", err)
	}
	g.owned.Wait()
}

// deliver tells of dead members until ctx ends.
func (g *Group) deliver(ctx context.Context, tell func(name string)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.wake:
		}
		g.mu.Lock()
		dead := g.dead
		g.dead = nil
		g.mu.Unlock()
		for _, name := range dead {
			if ctx.Err() != nil {
				return
			}
			tell(name)
		}
	}
}

// delegate is the part of a group that memberlist calls. Its events come one at a time.
type delegate struct{ g *Group }

func (d delegate) NodeMeta(int) []byte {
	d.g.mu.Lock()
	defer d.g.mu.Unlock()
	if d.g.draining {
		return []byte(draining)
	}
	return nil
}

// Members exchange no messages, and no state except who they are.
func (delegate) NotifyMsg([]byte)                {}
func (delegate) GetBroadcasts(_, _ int) [][]byte { return nil }
func (delegate) LocalState(bool) []byte          { return nil }
func (delegate) MergeRemoteState([]byte, bool)   {}

// Of those who come and change, memberlist has the list.
func (delegate) NotifyJoin(*memberlist.Node)   {}
func (delegate) NotifyUpdate(*memberlist.Node) {}

// NotifyLeave queues a member that is gone for Dead, unless it had announced that.
func (d delegate) NotifyLeave(n *memberlist.Node) {
	if n.Name == d.g.name || string(n.Meta) == draining {
		return
	}
	d.g.mu.Lock()
	defer d.g.mu.Unlock()
	d.g.dead = append(d.g.dead, n.Name)
	select {
	case d.g.wake <- struct{}{}:
	default:
	}
}

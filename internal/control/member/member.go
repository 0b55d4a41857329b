package member

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

// keySize is the key size of AES-256, in bytes.
const keySize = 32

// Role names what a member does in the run.
type Role string

// These are the roles.
const (
	Coordinator Role = "coordinator"
	Worker      Role = "worker"
)

// Meta holds what a member tells of itself: at most 512 bytes of JSON.
type Meta struct {
	Role Role `json:"role"`
	// Draining is true for a member that is about to leave.
	Draining bool `json:"draining,omitempty"`
	// Blocks is the address at which it serves rows, "" if it does not.
	Blocks string `json:"blocks,omitempty"`
}

// Member describes another member of the group, as last heard.
type Member struct {
	Name string
	// Address is host:port of its gossip.
	Address string
	Meta
}

// Kind names what happened to a member.
type Kind string

// These are the kinds of events.
const (
	// Joined says that it is present, for the first time or again after it was dead.
	Joined Kind = "joined"
	// Changed says that its Meta has changed.
	Changed Kind = "changed"
	// Left says that it is gone, as it had announced.
	Left Kind = "left"
	// Dead says that it fell silent.
	Dead Kind = "dead"
)

// Event is news of a member. Member describes it as last heard.
type Event struct {
	Kind   Kind
	Member Member
}

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
	Key  []byte
	Meta Meta
	// Notify is called with each event in order, one at a time, until Leave or Close. It
	// may call the group, but not Leave or Close.
	Notify func(Event)
	Log    *slog.Logger

	// The other fields serve tests: the pace of seeking, and changes to the calm settings.
	seekEvery time.Duration
	configure func(*memberlist.Config)
}

// Group is one process's view of all members. The nil Group has no members, and its methods do
// nothing.
type Group struct {
	name, address string
	list          *memberlist.Memberlist
	log           *slog.Logger
	cancel        context.CancelFunc
	owned         sync.WaitGroup

	mu      sync.Mutex
	meta    Meta
	left    bool
	members map[string]Member
	// news holds the events that Notify has not received. Callbacks of memberlist run under its
	// locks, so they only queue.
	news []Event
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
// Notify; the process remains a member until Leave or Close.
func Join(ctx context.Context, o Options) (*Group, error) {
	if o.Key != nil && len(o.Key) != keySize {
		return nil, fmt.Errorf("member: the gossip key has %d bytes, not %d", len(o.Key), keySize)
	}
	if text := encode(Meta{Role: o.Meta.Role, Draining: true, Blocks: o.Meta.Blocks}); len(text) > memberlist.MetaMaxSize {
		return nil, fmt.Errorf("member: role and address take %d bytes, the limit is %d", len(text), memberlist.MetaMaxSize)
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
	g := &Group{name: o.Name, log: o.Log, meta: o.Meta, members: map[string]Member{}, wake: make(chan struct{}, 1)}
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
	if o.Notify != nil {
		g.owned.Go(func() { g.deliver(ctx, o.Notify) })
	}
	return g, nil
}

// Name returns the name by which the others know this process.
func (g *Group) Name() string {
	if g == nil {
		return ""
	}
	return g.name
}

// Address returns host:port for the Seeds of others.
func (g *Group) Address() string {
	if g == nil {
		return ""
	}
	return g.address
}

// Members lists the other known members, sorted by name.
func (g *Group) Members() []Member {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.SortedFunc(maps.Values(g.members), func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
}

// Drain announces that this member is about to leave, and waits at most a few seconds for the news
// to be sent.
func (g *Group) Drain() {
	if g == nil {
		return
	}
	g.mu.Lock()
	announced := g.meta.Draining || g.left
	g.meta.Draining = true
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
	if g == nil {
		return
	}
	g.Drain()
	if !g.leaves() {
		return
	}
	if err := g.list.Leave(leaveTimeout); err != nil {
		g.log.Info("members may take this one for dead", "reason", err)
	}
	g.shutdown()
}

// Close ends the group without a message, for use when the others end too. Notify is not called
// after it returns. It takes up to ten seconds if it is connecting to a seed that does not answer.
// After Leave or Close, both do nothing.
func (g *Group) Close() {
	if g != nil && g.leaves() {
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

// deliver passes the news to notify until ctx ends.
func (g *Group) deliver(ctx context.Context, notify func(Event)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.wake:
		}
		g.mu.Lock()
		news := g.news
		g.news = nil
		g.mu.Unlock()
		for _, e := range news {
			if ctx.Err() != nil {
				return
			}
			notify(e)
		}
	}
}

func encode(m Meta) []byte {
	text, err := json.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("member: metadata are strings and a bool: %v", err))
	}
	return text
}

// delegate is the part of a group that memberlist calls. Its events come one at a time.
type delegate struct{ g *Group }

func (d delegate) NodeMeta(int) []byte {
	d.g.mu.Lock()
	defer d.g.mu.Unlock()
	return encode(d.g.meta)
}

// Members exchange no messages, and no state except who they are.

func (delegate) NotifyMsg([]byte)                {}
func (delegate) GetBroadcasts(_, _ int) [][]byte { return nil }
func (delegate) LocalState(bool) []byte          { return nil }
func (delegate) MergeRemoteState([]byte, bool)   {}

func (d delegate) NotifyJoin(n *memberlist.Node)   { d.g.heard(Joined, n) }
func (d delegate) NotifyUpdate(n *memberlist.Node) { d.g.heard(Changed, n) }
func (d delegate) NotifyLeave(n *memberlist.Node)  { d.g.heard(Dead, n) }

// heard records an event and queues it for Notify.
func (g *Group) heard(kind Kind, n *memberlist.Node) {
	if n.Name == g.name {
		return
	}
	m := Member{Name: n.Name, Address: n.Address()}
	// A member with unreadable metadata is still a member.
	if err := json.Unmarshal(n.Meta, &m.Meta); err != nil {
		g.log.Info("metadata of a member are not legible", "member", n.Name, "reason", err)
		m.Meta = Meta{}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if kind == Dead {
		delete(g.members, m.Name)
		if m.Draining {
			kind = Left
		}
	} else {
		g.members[m.Name] = m
	}
	g.news = append(g.news, Event{Kind: kind, Member: m})
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

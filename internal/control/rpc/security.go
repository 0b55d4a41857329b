package rpc

import (
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"ndls/internal/control"
	"ndls/internal/control/conns"
	"ndls/internal/failure"
)

// TokenVariable is the environment variable that holds the job token if no file does.
const TokenVariable = "NDLS_TOKEN"

const (
	secretBytes = 32
	gossipLabel = "ndls gossip key v1"
	// authorityLabel derives the key of the authority that a token stands for.
	authorityLabel = "ndls authority key v1"
	tokenWayOut    = "write one with: openssl rand -hex 32 > FILE, and give --token-file FILE to the coordinator and to every worker"
	keysWayOut     = "make keys with: ndls cluster-keys --out DIR, and give --keys DIR to the coordinator and to every worker"
	sameWayOut     = "give both sides the same token, or both --keys with keys of one `ndls cluster-keys`"
)

// Role names the part of a process in a job. A certificate is for one role.
type Role string

// These are the roles.
const (
	Coordinator Role = "coordinator"
	Worker      Role = "worker"
)

// host returns the host name that stands for the role in certificates.
func (r Role) host() string { return string(r) + roleDomain }

// Security proves that a process belongs to the job, and checks the proof of others. It serves
// every connection of the job, also those of blocks and gossip.
type Security struct {
	// Exposed lists the files of this security's secrets that other users of the host
	// may read. The caller should warn of them.
	Exposed []string

	token string
	// secret is the secret from which the gossip key and the authority of a token are derived.
	secret []byte
	roots  *x509.CertPool
	pair   tls.Certificate
	now    func() time.Time
}

// LoadSecurity reads the keys of role from the folder keys. If that is "", it reads the job token
// from tokenFile, and if that is "" too, from NDLS_TOKEN. Its errors say what to do; an error about
// the options wraps failure.ErrOption.
func LoadSecurity(keys string, role Role, tokenFile string) (*Security, error) {
	switch {
	case keys != "" && tokenFile != "":
		return nil, fmt.Errorf("rpc: --keys and --token-file are two ways to the same end: give one: %w", failure.ErrOption)
	case keys != "":
		return loadKeys(keys, role, time.Now)
	case tokenFile != "":
		text, err := os.ReadFile(tokenFile)
		if err != nil {
			return nil, fmt.Errorf("rpc: reading the job token: %w; %s", err, tokenWayOut)
		}
		s, err := TokenSecurity(string(text), tokenFile)
		if err == nil {
			s.Exposed = exposed(tokenFile)
		}
		return s, err
	case os.Getenv(TokenVariable) != "":
		return TokenSecurity(os.Getenv(TokenVariable), TokenVariable)
	}
	return nil, fmt.Errorf("rpc: the job has neither keys nor a token: %s; or %s: %w", keysWayOut, tokenWayOut, failure.ErrOption)
}

// TokenSecurity returns the security of a job token: 64 hexadecimal digits, perhaps with white
// space around them. source names its origin for the error.
func TokenSecurity(token, source string) (*Security, error) {
	token = strings.ToLower(strings.TrimSpace(token))
	secret, err := hex.DecodeString(token)
	if err != nil || len(secret) != secretBytes {
		return nil, fmt.Errorf("rpc: the job token in %s is not %d hexadecimal digits: %s: %w", source, 2*secretBytes, tokenWayOut, failure.ErrOption)
	}
	s := &Security{token: token, secret: secret, roots: x509.NewCertPool(), now: time.Now}
	a, err := tokenAuthority(s.derive(authorityLabel))
	if err != nil {
		return nil, fmt.Errorf("rpc: the authority of the job token: %w", err)
	}
	s.roots.AddCert(a.certificate)
	if s.pair, err = a.pair(Coordinator, Worker); err != nil {
		return nil, fmt.Errorf("rpc: a certificate by the job token: %w", err)
	}
	return s, nil
}

// exposed lists the files that other users may read. A file of another owner, such as a mounted
// secret of Kubernetes, may be readable by the group, because this process reads it that way.
func exposed(files ...string) (list []string) {
	for _, name := range files {
		st, err := os.Stat(name)
		if err != nil || !st.Mode().IsRegular() {
			continue
		}
		others := fs.FileMode(0o004)
		if owner, ok := st.Sys().(*syscall.Stat_t); ok && int(owner.Uid) == os.Getuid() {
			others = 0o044
		}
		if st.Mode().Perm()&others != 0 {
			list = append(list, name)
		}
	}
	return list
}

// Token returns the job's token, "" if the job has only certificates.
func (s *Security) Token() string { return s.token }

// MakeToken returns a new job token.
func MakeToken() string {
	return hex.EncodeToString(randomBytes(secretBytes))
}

func loadKeys(dir string, role Role, now func() time.Time) (*Security, error) {
	read := func(name string) ([]byte, error) {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, fmt.Errorf("rpc: reading the job's keys: %w; %s", err, keysWayOut)
		}
		return text, nil
	}
	authority, err := read(authorityFile)
	if err != nil {
		return nil, err
	}
	certificate, err := read(string(role) + ".pem")
	if err != nil {
		return nil, err
	}
	key, err := read(string(role) + ".key")
	if err != nil {
		return nil, err
	}
	gossip, err := read(gossipFile)
	if err != nil {
		return nil, err
	}
	s := &Security{roots: x509.NewCertPool(), now: now}
	s.Exposed = exposed(filepath.Join(dir, string(role)+".key"), filepath.Join(dir, gossipFile))
	if s.secret, err = hex.DecodeString(strings.TrimSpace(string(gossip))); err != nil || len(s.secret) != secretBytes {
		return nil, fmt.Errorf("rpc: %s does not hold %d hexadecimal digits; %s", filepath.Join(dir, gossipFile), 2*secretBytes, keysWayOut)
	}
	if !s.roots.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("rpc: %s holds no certificate; %s", filepath.Join(dir, authorityFile), keysWayOut)
	}
	if s.pair, err = tls.X509KeyPair(certificate, key); err != nil {
		return nil, fmt.Errorf("rpc: the %s's keys in %s: %w; %s", role, dir, err, keysWayOut)
	}
	options := x509.VerifyOptions{
		DNSName: role.host(), Roots: s.roots, CurrentTime: now(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	}
	if _, err := s.pair.Leaf.Verify(options); err != nil {
		return nil, fmt.Errorf("rpc: the %s's certificate in %s: %w; %s", role, dir, err, keysWayOut)
	}
	return s, nil
}

// GossipKey returns the key that encrypts gossip, the same for every process of the job.
func (s *Security) GossipKey() []byte { return s.derive(gossipLabel) }

// derive returns 32 bytes for one purpose: HKDF (RFC 5869) with SHA-256 of the job's secret.
func (s *Security) derive(label string) []byte {
	key, err := hkdf.Key(sha256.New, s.secret, nil, label, 32)
	if err != nil {
		panic(fmt.Sprintf("rpc: 32 bytes are few for HKDF: %v", err))
	}
	return key
}

// ServerOptions returns the options of a gRPC server that serves only workers of the job.
func (s *Security) ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{grpc.Creds(conns.Credentials(credentials.NewTLS(s.serverTLS())))}
}

// DialOptions returns the options of a gRPC client that talks only to a server of that role in the
// job.
func (s *Security) DialOptions(server Role) []grpc.DialOption {
	return []grpc.DialOption{grpc.WithTransportCredentials(s.clientCredentials(server))}
}

func (s *Security) clientCredentials(server Role) credentials.TransportCredentials {
	return credentials.NewTLS(s.clientTLS(server))
}

func (s *Security) serverTLS() *tls.Config {
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{s.pair},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    s.roots,
		Time:         s.now,
		VerifyConnection: func(c tls.ConnectionState) error {
			return c.PeerCertificates[0].VerifyHostname(Worker.host())
		},
	}
}

func (s *Security) clientTLS(server Role) *tls.Config {
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{s.pair},
		RootCAs:      s.roots,
		ServerName:   server.host(),
		Time:         s.now,
	}
}

// refusal returns, for an error of a connection that does not go away by itself, an error that says
// what to do. It returns nil for all others.
func refusal(err error) error {
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var remote *net.OpError
	switch {
	case errors.Is(err, control.ErrRefused):
		return err
	case errors.As(err, &certificate):
		return fmt.Errorf("the coordinator's certificate is not of this job (%w): "+sameWayOut, err)
	case errors.As(err, &record):
		return fmt.Errorf("who listens there does not speak TLS (%w), as a coordinator of this version does: look at the address, and start both from the same program", err)
	case errors.As(err, &remote) && remote.Op == "remote error":
		return fmt.Errorf("the coordinator does not take this worker's certificate (%w): "+sameWayOut+", and look at both clocks", err)
	}
	return nil
}

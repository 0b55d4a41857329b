package rpc

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ndls/internal/failure"
)

const (
	authorityFile = "ca.pem"
	gossipFile    = "gossip.key"
	// roleDomain is no domain of the Internet: names in it are roles.
	roleDomain = ".ndls"
	// clockSkew is the time by which clocks of hosts may be behind the clock of the host that makes
	// the keys.
	clockSkew = 5 * time.Minute
)

// roleUsages says on which side of a connection a role may be.
var roleUsages = map[Role][]x509.ExtKeyUsage{
	Coordinator: {x509.ExtKeyUsageServerAuth},
	Worker:      {x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
}

// keyFile is one file of a folder of keys.
type keyFile struct {
	name string
	text []byte
}

// MakeKeys writes the keys of a job to the folder dir, which it creates: ca.pem,
// a certificate and an ECDSA P-256 key for each role, and the secret of gossip, all
// with mode 0600. hosts are names and addresses that the certificates hold beside
// their role, for programs that check those. The certificates begin five minutes
// ago and end after valid. Where one of the files exists, nothing is written.
func MakeKeys(dir string, hosts []string, valid time.Duration) error {
	if valid <= 0 {
		return fmt.Errorf("rpc: keys that are valid for %v are valid never: %w", valid, failure.ErrOption)
	}
	files, err := makeFiles(hosts, valid)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("rpc: making keys: %w", err)
	}
	for _, f := range files {
		if _, err := os.Lstat(filepath.Join(dir, f.name)); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("rpc: %s exists, and running jobs may need it: choose another folder, or remove the keys in this one: %w",
				filepath.Join(dir, f.name), errors.Join(err, fs.ErrExist))
		}
	}
	for _, f := range files {
		if err := writeNew(filepath.Join(dir, f.name), f.text); err != nil {
			return fmt.Errorf("rpc: making keys: %w", err)
		}
	}
	return nil
}

func makeFiles(hosts []string, valid time.Duration) ([]keyFile, error) {
	a, err := newAuthority(valid)
	if err != nil {
		return nil, fmt.Errorf("rpc: making keys: %w", err)
	}
	files := []keyFile{
		{authorityFile, encodePEM("CERTIFICATE", a.certificate.Raw)},
		{gossipFile, []byte(MakeToken() + "\n")},
	}
	for _, role := range []Role{Coordinator, Worker} {
		certificate, key, err := a.issue(hosts, role)
		if err != nil {
			return nil, fmt.Errorf("rpc: making the %s's keys: %w", role, err)
		}
		secret, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			return nil, fmt.Errorf("rpc: making the %s's keys: %w", role, err)
		}
		files = append(files, keyFile{string(role) + ".pem", encodePEM("CERTIFICATE", certificate)},
			keyFile{string(role) + ".key", encodePEM("PRIVATE KEY", secret)})
	}
	return files, nil
}

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// newAuthority makes an authority with a new key.
func newAuthority(valid time.Duration) (authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return authority{}, err
	}
	now := time.Now()
	return authorityOf(key, hex.EncodeToString(randomBytes(4)), now.Add(-clockSkew), now.Add(valid))
}

// tokenAuthority returns the authority that a token stands for: a process with the token has the
// key from this seed, and issues a certificate to itself. It does not expire, because a token does
// not.
func tokenAuthority(seed []byte) (authority, error) {
	return authorityOf(ed25519.NewKeyFromSeed(seed), "of a token", time.Unix(0, 0), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC))
}

func authorityOf(key crypto.Signer, name string, from, until time.Time) (authority, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "ndls job " + name},
		NotBefore:             from,
		NotAfter:              until,
		KeyUsage:              x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return authority{}, err
	}
	certificate, err := x509.ParseCertificate(der)
	return authority{certificate, key}, err
}

// pair issues a certificate for some roles together with its key.
func (a authority) pair(roles ...Role) (pair tls.Certificate, err error) {
	certificate, key, err := a.issue(nil, roles...)
	return tls.Certificate{Certificate: [][]byte{certificate}, PrivateKey: key}, err
}

// issue makes a key, and a certificate of it in DER.
func (a authority) issue(hosts []string, roles ...Role) (certificate []byte, key *ecdsa.PrivateKey, err error) {
	if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: roles[0].host()},
		NotBefore: a.certificate.NotBefore,
		NotAfter:  a.certificate.NotAfter,
		KeyUsage:  x509.KeyUsageDigitalSignature,
	}
	for _, role := range roles {
		template.DNSNames = append(template.DNSNames, role.host())
		for _, usage := range roleUsages[role] {
			if !slices.Contains(template.ExtKeyUsage, usage) {
				template.ExtKeyUsage = append(template.ExtKeyUsage, usage)
			}
		}
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
			continue
		}
		// With the coordinator's name in its certificate, a worker could act as the coordinator.
		if host == "" || strings.ContainsAny(host, "*:/ ") || strings.HasSuffix(strings.ToLower(strings.TrimSuffix(host, ".")), roleDomain) {
			return nil, nil, fmt.Errorf("%q is not an address or the name of a host outside %s: %w", host, roleDomain, failure.ErrOption)
		}
		template.DNSNames = append(template.DNSNames, host)
	}
	certificate, err = x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
	return certificate, key, err
}

func encodePEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	rand.Read(b)
	return b
}

func writeNew(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

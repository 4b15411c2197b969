package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// The values of --tls-fault.
const (
	faultHandshake = "handshake"
	faultExpired   = "expired"
)

// errHandshake is why a handshake fails that is to fail; the client gets an alert.
var errHandshake = errors.New("the handshake fails, as --tls-fault wants it")

// tlsSettings are the flags about HTTPS.
type tlsSettings struct {
	certFile, keyFile string
	generate          string // directory for generated files
	clientCA          string
	fault             string
}

// check reports flags that contradict each other.
func (t tlsSettings) check() error {
	serves := t.certFile != "" || t.generate != ""
	switch {
	case (t.certFile == "") != (t.keyFile == ""):
		return errors.New("--tls-cert and --tls-key need each other")
	case t.certFile != "" && t.generate != "":
		return errors.New("--tls-cert and --tls-generate exclude each other")
	case !serves && (t.clientCA != "" || t.fault != ""):
		return errors.New("--tls-client-ca and --tls-fault need --tls-cert or --tls-generate")
	case t.fault != "" && t.fault != faultHandshake && t.fault != faultExpired:
		return fmt.Errorf("--tls-fault %q is neither %q nor %q", t.fault, faultHandshake, faultExpired)
	case t.fault == faultExpired && t.generate == "":
		return fmt.Errorf("--tls-fault %q needs --tls-generate", t.fault)
	}
	return nil
}

// config returns the configuration for HTTPS at a host, nil for HTTP.
func (t tlsSettings) config(host string) (*tls.Config, error) {
	pair, err := t.certificate(host)
	if err != nil || pair == nil {
		return nil, err
	}
	config := &tls.Config{Certificates: []tls.Certificate{*pair}, MinVersion: tls.VersionTLS12}
	if t.clientCA != "" {
		if config.ClientCAs, err = readPool(t.clientCA); err != nil {
			return nil, err
		}
		config.ClientAuth = tls.RequireAndVerifyClientCert
	}
	if t.fault == faultHandshake {
		config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return nil, errHandshake }
	}
	return config, nil
}

func readPool(file string) (*x509.CertPool, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read client CA: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("cannot read client CA: %q holds no certificate", file)
	}
	return pool, nil
}

// certificate returns that of the files, or a new one.
func (t tlsSettings) certificate(host string) (*tls.Certificate, error) {
	switch {
	case t.generate != "":
		return generate(t.generate, host, t.fault == faultExpired, time.Now())
	case t.certFile != "":
		pair, err := tls.LoadX509KeyPair(t.certFile, t.keyFile)
		if err != nil {
			return nil, fmt.Errorf("cannot load certificate: %w", err)
		}
		return &pair, nil
	default:
		return nil, nil
	}
}

// lifetime is how long generated certificates are valid.
const lifetime = 24 * time.Hour

// generate makes a CA, a certificate for the host signed by it, and one for a client. The CA's certificate and what the
// client needs are written to the directory. An expired certificate of the host was valid until an hour ago.
func generate(dir, host string, expired bool, now time.Time) (*tls.Certificate, error) {
	begin, end := now.Add(-time.Hour), now.Add(lifetime)
	ca, err := issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: "aai-simulator CA"}, NotBefore: begin, NotAfter: end,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil)
	if err != nil {
		return nil, err
	}
	client, err := issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: "client"}, NotBefore: begin, NotAfter: end, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, ca)
	if err != nil {
		return nil, err
	}
	wanted := &x509.Certificate{
		Subject: pkix.Name{CommonName: "aai-simulator"}, NotBefore: begin, NotAfter: end,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	if ip := net.ParseIP(host); ip != nil {
		wanted.IPAddresses = append(wanted.IPAddresses, ip)
	} else if host != "" {
		wanted.DNSNames = append(wanted.DNSNames, host)
	}
	if expired {
		wanted.NotBefore, wanted.NotAfter = begin.Add(-lifetime), begin
	}
	server, err := issue(wanted, ca)
	if err != nil {
		return nil, err
	}
	if err := writeGenerated(dir, ca, client); err != nil {
		return nil, err
	}
	return server, nil
}

// issue makes a key and a certificate for it, signed by a CA, or by itself when there is none.
func issue(wanted *x509.Certificate, ca *tls.Certificate) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot generate key: %w", err)
	}
	if wanted.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return nil, fmt.Errorf("cannot generate serial number: %w", err)
	}
	parent, signer := wanted, any(key)
	if ca != nil {
		parent, signer = ca.Leaf, ca.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, wanted, parent, key.Public(), signer)
	if err != nil {
		return nil, fmt.Errorf("cannot create certificate %q: %w", wanted.Subject.CommonName, err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("cannot parse certificate %q: %w", wanted.Subject.CommonName, err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, nil
}

func writeGenerated(dir string, ca, client *tls.Certificate) error {
	key, err := x509.MarshalPKCS8PrivateKey(client.PrivateKey)
	if err != nil {
		return fmt.Errorf("cannot encode client key: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("cannot make directory for certificates: %w", err)
	}
	for _, f := range []struct {
		name, kind string
		der        []byte
	}{
		{"ca.pem", "CERTIFICATE", ca.Certificate[0]},
		{"client.pem", "CERTIFICATE", client.Certificate[0]},
		{"client-key.pem", "PRIVATE KEY", key},
	} {
		data := pem.EncodeToMemory(&pem.Block{Type: f.kind, Bytes: f.der})
		if err := os.WriteFile(filepath.Join(dir, f.name), data, 0o600); err != nil {
			return fmt.Errorf("cannot write certificate: %w", err)
		}
	}
	return nil
}

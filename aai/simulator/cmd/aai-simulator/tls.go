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
	"net"
	"os"
	"path/filepath"
	"time"
)

// tlsSettings are the flags about HTTPS.
type tlsSettings struct {
	certFile, keyFile string
	directory         string // for generated files
	clientCA          string
}

// check returns an error if flags contradict each other.
func (t tlsSettings) check() error {
	switch {
	case (t.certFile == "") != (t.keyFile == ""):
		return errors.New("--tls-cert and --tls-key need each other")
	case t.certFile != "" && t.directory != "":
		return errors.New("--tls-cert and --tls-generate exclude each other")
	case t.certFile == "" && t.directory == "" && t.clientCA != "":
		return errors.New("--tls-client-ca needs --tls-cert or --tls-generate")
	}
	return nil
}

// config returns the configuration for HTTPS at a host, nil for HTTP.
func (t tlsSettings) config(host string) (*tls.Config, error) {
	var pair tls.Certificate
	var err error
	switch {
	case t.directory != "":
		pair, err = generate(t.directory, host, time.Now())
	case t.certFile != "":
		pair, err = tls.LoadX509KeyPair(t.certFile, t.keyFile)
	default:
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot get certificate: %w", err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	if t.clientCA != "" {
		if config.ClientCAs, err = readPool(t.clientCA); err != nil {
			return nil, err
		}
		config.ClientAuth = tls.RequireAndVerifyClientCert
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

// certificateLifetime is how long generated certificates are valid.
const certificateLifetime = 24 * time.Hour

// generate creates a CA, and certificates for the host and for a client signed by it. It writes the CA's certificate and the
// client's certificate and key to the directory.
func generate(dir, host string, now time.Time) (tls.Certificate, error) {
	server := &x509.Certificate{
		Subject: pkix.Name{CommonName: "aai-simulator"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	if ip := net.ParseIP(host); ip != nil {
		server.IPAddresses = append(server.IPAddresses, ip)
	} else if host != "" {
		server.DNSNames = append(server.DNSNames, host)
	}
	ca := &x509.Certificate{
		Subject: pkix.Name{CommonName: "aai-simulator CA"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	client := &x509.Certificate{Subject: pkix.Name{CommonName: "client"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	var issued []tls.Certificate
	var signer *tls.Certificate
	for _, template := range []*x509.Certificate{ca, client, server} {
		template.NotBefore, template.NotAfter = now.Add(-time.Hour), now.Add(certificateLifetime)
		pair, err := issue(template, signer)
		if err != nil {
			return pair, fmt.Errorf("cannot issue certificate %q: %w", template.Subject.CommonName, err)
		}
		if signer == nil {
			signer = &pair
		}
		issued = append(issued, pair)
	}
	return issued[2], writeFiles(dir, issued[0], issued[1])
}

// issue creates a key and a certificate for it, signed by ca, or self-signed if ca is nil.
func issue(template *x509.Certificate, ca *tls.Certificate) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	parent, signer := template, any(key)
	if ca != nil {
		parent, signer = ca.Leaf, ca.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return tls.Certificate{}, err
	}
	leaf, err := x509.ParseCertificate(der)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, err
}

func writeFiles(dir string, ca, client tls.Certificate) error {
	key, err := x509.MarshalPKCS8PrivateKey(client.PrivateKey)
	if err != nil {
		return fmt.Errorf("cannot encode client key: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("cannot make directory for certificates: %w", err)
	}
	for name, block := range map[string]*pem.Block{
		"ca.pem":         {Type: "CERTIFICATE", Bytes: ca.Certificate[0]},
		"client.pem":     {Type: "CERTIFICATE", Bytes: client.Certificate[0]},
		"client-key.pem": {Type: "PRIVATE KEY", Bytes: key},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			return fmt.Errorf("cannot write certificate: %w", err)
		}
	}
	return nil
}

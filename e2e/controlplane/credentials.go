package controlplane

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// The files in pkiDir.
const (
	caFile            = "ca.crt"
	serverCertFile    = "apiserver.crt"
	serverKeyFile     = "apiserver.key"
	accountKeyFile    = "service-accounts.key"
	accountPublicFile = "service-accounts.pub"
)

// certificateLife is how long the certificates are valid: longer than anybody keeps a control plane for tests.
const certificateLife = 365 * 24 * time.Hour

// The kubeconfig files.
const (
	adminKubeconfig             = "admin.kubeconfig"
	controllerManagerKubeconfig = "kube-controller-manager.kubeconfig"
	schedulerKubeconfig         = "kube-scheduler.kubeconfig"
	kwokKubeconfig              = "kwok.kubeconfig"
)

// client is somebody with a client certificate: the user and group that RBAC sees.
type client struct {
	kubeconfig string
	user       string
	groups     []string
}

// clients are those the launcher makes kubeconfigs for. The users of controller-manager and scheduler have their rights
// from the API server's default roles. kwok stands for every kubelet at once, which no default role covers. The admin
// comes last: its file marks a directory as complete.
func clients() []client {
	return []client{
		{controllerManagerKubeconfig, "system:kube-controller-manager", nil},
		{schedulerKubeconfig, "system:kube-scheduler", nil},
		{kwokKubeconfig, "kwok", []string{"system:masters"}},
		{adminKubeconfig, "admin", []string{"system:masters"}},
	}
}

// writeCredentials makes a certificate authority, lets it sign the API server's certificate and those of the clients,
// makes the key pair for service-account tokens, and writes all to work. The authority's key is not kept. url is the API
// server's.
func writeCredentials(work *workdir, name, url string) error {
	authority, err := newAuthority(name)
	if err != nil {
		return err
	}
	if err := writeServerCredentials(work, authority); err != nil {
		return err
	}
	for _, c := range clients() {
		certificate, key, err := authority.sign(x509.Certificate{
			Subject:     pkix.Name{CommonName: c.user, Organization: c.groups},
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		})
		if err != nil {
			return fmt.Errorf("cannot make credentials of %q: %w", c.user, err)
		}
		user := &api.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key}
		if err := writeKubeconfig(work.file(c.kubeconfig), name, url, authority.pem(), user); err != nil {
			return err
		}
	}
	return nil
}

// writeServerCredentials writes what kube-apiserver needs.
func writeServerCredentials(work *workdir, authority *authority) error {
	certificate, key, err := authority.sign(x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(kubernetesServiceIP)},
	})
	if err != nil {
		return fmt.Errorf("cannot make credentials of kube-apiserver: %w", err)
	}
	accountKey, err := newKey()
	if err != nil {
		return err
	}
	accountKeyPEM, err := keyutil.MarshalPrivateKeyToPEM(accountKey)
	if err != nil {
		return fmt.Errorf("cannot encode service-account key: %w", err)
	}
	accountPublic, err := x509.MarshalPKIXPublicKey(accountKey.Public())
	if err != nil {
		return fmt.Errorf("cannot encode service-account key: %w", err)
	}
	for name, content := range map[string][]byte{
		caFile:            authority.pem(),
		serverCertFile:    certificate,
		serverKeyFile:     key,
		accountKeyFile:    accountKeyPEM,
		accountPublicFile: pem.EncodeToMemory(&pem.Block{Type: keyutil.PublicKeyBlockType, Bytes: accountPublic}),
	} {
		if err := writePrivateFile(work.file(pkiDir, name), content); err != nil {
			return err
		}
	}
	return nil
}

// authority is a certificate authority.
type authority struct {
	key         crypto.Signer
	certificate *x509.Certificate
}

func newAuthority(name string) (*authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	certificate, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "healthscope-" + name}, key)
	if err != nil {
		return nil, fmt.Errorf("cannot make certificate authority: %w", err)
	}
	return &authority{key: key, certificate: certificate}, nil
}

// pem is the authority's certificate.
func (a *authority) pem() []byte {
	return encodeCertificate(a.certificate.Raw)
}

// sign completes the template and returns the certificate and its key in PEM.
func (a *authority) sign(template x509.Certificate) (certificate, key []byte, err error) {
	private, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make serial number: %w", err)
	}
	now := time.Now()
	template.SerialNumber = serial
	template.NotBefore = now.Add(-time.Hour) // Clocks are never quite the same.
	template.NotAfter = now.Add(certificateLife)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, &template, a.certificate, private.Public(), a.key)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot sign certificate: %w", err)
	}
	if key, err = keyutil.MarshalPrivateKeyToPEM(private); err != nil {
		return nil, nil, fmt.Errorf("cannot encode key: %w", err)
	}
	return encodeCertificate(der), key, nil
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot make key: %w", err)
	}
	return key, nil
}

func encodeCertificate(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der})
}

// writePrivateFile writes a file that only its owner can read, whole or not at all: a program that reads it never sees a
// part, and an existing file's wider permissions do not remain.
func writePrivateFile(path string, content []byte) (err error) {
	temporary, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".")
	if err != nil {
		return fmt.Errorf("cannot write %q: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temporary.Name())
		}
	}()
	if _, err := temporary.Write(content); err != nil {
		_ = temporary.Close()
		return fmt.Errorf("cannot write %q: %w", path, err)
	}
	if err := temporary.Close(); err != nil {
		return fmt.Errorf("cannot write %q: %w", path, err)
	}
	if err := os.Rename(temporary.Name(), path); err != nil {
		return fmt.Errorf("cannot write %q: %w", path, err)
	}
	return nil
}

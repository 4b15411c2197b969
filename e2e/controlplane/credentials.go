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
	"time"

	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// The files with credentials.
const (
	adminKubeconfig = "admin.kubeconfig"
	caFile          = "ca.crt"
	serverCertFile  = "apiserver.crt"
	serverKeyFile   = "apiserver.key"
	accountKeyFile  = "service-accounts.key"
)

// certificateLife is the validity of the certificates. It is longer than the life of a test control plane.
const certificateLife = 365 * 24 * time.Hour

// writeCredentials creates a certificate authority, certificates of the API server at url and of the administrator, and
// the key for service-account tokens, and writes them to files. It does not store the authority's key.
func writeCredentials(h *home, name, url string) error {
	key, err := newKey()
	if err != nil {
		return err
	}
	authority, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "healthscope-" + name}, key)
	if err != nil {
		return fmt.Errorf("cannot make a certificate authority: %w", err)
	}
	serverCert, serverKey, err := sign(authority, key, x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(kubernetesServiceIP)},
	})
	if err != nil {
		return err
	}
	adminCert, adminKey, err := sign(authority, key, x509.Certificate{
		Subject:     pkix.Name{CommonName: "admin", Organization: []string{"system:masters"}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return err
	}
	accountKey, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return fmt.Errorf("cannot make the key of service accounts: %w", err)
	}
	authorityPEM := encodeCertificate(authority.Raw)
	for file, content := range map[string][]byte{caFile: authorityPEM, serverCertFile: serverCert, serverKeyFile: serverKey, accountKeyFile: accountKey} {
		if err := os.WriteFile(h.file(file), content, 0o600); err != nil {
			return fmt.Errorf("cannot write credentials: %w", err)
		}
	}
	return writeKubeconfig(h.file(adminKubeconfig), name, url, authorityPEM, &api.AuthInfo{ClientCertificateData: adminCert, ClientKeyData: adminKey})
}

// sign completes the template and returns the certificate and its key in PEM.
func sign(authority *x509.Certificate, signer crypto.Signer, template x509.Certificate) (certificate, key []byte, err error) {
	private, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make a serial number: %w", err)
	}
	now := time.Now()
	template.SerialNumber = serial
	template.NotBefore = now.Add(-time.Hour) // Clocks may differ.
	template.NotAfter = now.Add(certificateLife)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, &template, authority, private.Public(), signer)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot sign a certificate: %w", err)
	}
	if key, err = keyutil.MarshalPrivateKeyToPEM(private); err != nil {
		return nil, nil, fmt.Errorf("cannot encode a key: %w", err)
	}
	return encodeCertificate(der), key, nil
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot make a key: %w", err)
	}
	return key, nil
}

func encodeCertificate(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der})
}

package kubeconfig

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

// newPair returns a certificate and its key, as PEM.
func newPair(t testing.TB) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}

func TestParseAcceptsSafeKubeconfigs(t *testing.T) {
	certificate, key := newPair(t)
	cases := map[string]struct {
		data  []byte
		host  string
		token string
	}{
		"token, authorities of the system": {sample(t, nil), "https://edge01.example.org:6443", canary},
		"authority, server behind a path": {sample(t, func(c *clientcmdapi.Config) {
			c.Clusters[0].Cluster = clientcmdapi.Cluster{Server: "https://[2001:db8::1]/k8s/clusters/c-1", CertificateAuthorityData: certificate, TLSServerName: "edge01"}
		}), "https://[2001:db8::1]/k8s/clusters/c-1", canary},
		"client certificate": {sample(t, func(c *clientcmdapi.Config) {
			c.AuthInfos[0].AuthInfo = clientcmdapi.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key}
		}), "https://edge01.example.org:6443", ""},
		"JSON without type": {[]byte(`{"current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "x"}}],
			"clusters": [{"name": "c", "cluster": {"server": "https://h", "insecure-skip-tls-verify": false}}], "users": [{"name": "u", "user": {"token": "` + canary + `"}}]}`), "https://h", canary},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			config, err := Parse(c.data)
			if err != nil {
				t.Fatal(err)
			}
			if config.Host != c.host || config.BearerToken != c.token {
				t.Errorf("host %q, token %q; want %q, %q", config.Host, config.BearerToken, c.host, c.token)
			}
			if config.Timeout != 0 {
				t.Errorf("timeout %s would end watches too", config.Timeout)
			}
		})
	}
}

func TestOptionsOfParse(t *testing.T) {
	config, err := Options{QPS: 3, Burst: 4, Timeout: 5 * time.Second, UserAgent: "healthscope-controller/v1"}.Parse(sample(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	if got := limitedTransportOf(t, config).limits.timeout; got != 5*time.Second {
		t.Errorf("deadline %s, want 5s", got)
	}
	if config.UserAgent != "healthscope-controller/v1" || config.QPS != 3 || config.Burst != 4 || config.RateLimiter.QPS() != 3 {
		t.Errorf("user agent %q, %v requests a second, %d at once", config.UserAgent, config.QPS, config.Burst)
	}
	for range 4 {
		if !config.RateLimiter.TryAccept() {
			t.Fatal("fewer requests are let through at once than the burst")
		}
	}
	if config.RateLimiter.TryAccept() {
		t.Error("more requests are let through at once than the burst")
	}
}

// TestTransportUsesTheCertificates checks that the transport uses the certificates that were validated.
func TestTransportUsesTheCertificates(t *testing.T) {
	certificate, key := newPair(t)
	config, err := Parse(sample(t, func(c *clientcmdapi.Config) {
		c.Clusters[0].Cluster.CertificateAuthorityData, c.Clusters[0].Cluster.TLSServerName = certificate, "edge01"
		c.AuthInfos[0].AuthInfo = clientcmdapi.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key}
	}))
	if err != nil {
		t.Fatal(err)
	}
	transport := transportOf(t, config)
	if transport.TLSClientConfig.RootCAs == nil || len(transport.TLSClientConfig.Certificates) != 1 || transport.TLSClientConfig.ServerName != "edge01" {
		t.Error("authority, client certificate or server name are not used")
	}
	if transport.TLSClientConfig.InsecureSkipVerify || transport.Proxy != nil {
		t.Error("a server that is not verified, or a proxy of the environment, is taken")
	}
}

// hostile returns kubeconfigs that Parse must refuse, with the text that the error must contain.
func hostile(t testing.TB) map[string]struct {
	edit func(*clientcmdapi.Config)
	want string
} {
	certificate, _ := newPair(t)
	_, another := newPair(t)
	type c = *clientcmdapi.Config
	return map[string]struct {
		edit func(*clientcmdapi.Config)
		want string
	}{
		"exec": {func(c c) { c.AuthInfos[0].AuthInfo.Exec = &clientcmdapi.ExecConfig{Command: "/bin/" + canary} },
			`users[hub].user.exec: Forbidden: the hub runs no programs`},
		"exec of a user that is not used": {func(c c) {
			c.AuthInfos = append(c.AuthInfos, clientcmdapi.NamedAuthInfo{Name: "other", AuthInfo: clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{}}})
		}, `users[other].user.exec`},
		"auth provider": {func(c c) {
			c.AuthInfos[0].AuthInfo.AuthProvider = &clientcmdapi.AuthProviderConfig{Name: "oidc", Config: map[string]string{"id-token": canary}}
		}, `users[hub].user.auth-provider`},
		"file of the authority":   {func(c c) { c.Clusters[0].Cluster.CertificateAuthority = "/etc/" + canary }, `clusters[site].cluster.certificate-authority:`},
		"file of the certificate": {func(c c) { c.AuthInfos[0].AuthInfo.ClientCertificate = "/etc/" + canary }, `users[hub].user.client-certificate:`},
		"file of the key":         {func(c c) { c.AuthInfos[0].AuthInfo.ClientKey = "/etc/" + canary }, `users[hub].user.client-key:`},
		"file of the token":       {func(c c) { c.AuthInfos[0].AuthInfo.TokenFile = "/etc/" + canary }, `users[hub].user.tokenFile:`},
		"proxy":                   {func(c c) { c.Clusters[0].Cluster.ProxyURL = "http://" + canary + "@proxy" }, `clusters[site].cluster.proxy-url:`},
		"no verification":         {func(c c) { c.Clusters[0].Cluster.InsecureSkipTLSVerify = true }, `clusters[site].cluster.insecure-skip-tls-verify:`},
		"impersonation":           {func(c c) { c.AuthInfos[0].AuthInfo.Impersonate = "admin" }, `users[hub].user.as:`},
		"impersonated uid":        {func(c c) { c.AuthInfos[0].AuthInfo.ImpersonateUID = "0" }, `users[hub].user.as-uid:`},
		"impersonated group":      {func(c c) { c.AuthInfos[0].AuthInfo.ImpersonateGroups = []string{"system:masters"} }, `users[hub].user.as-groups:`},
		"impersonated extra": {func(c c) { c.AuthInfos[0].AuthInfo.ImpersonateUserExtra = map[string][]string{"a": {"b"}} },
			`users[hub].user.as-user-extra:`},
		"password":                  {func(c c) { c.AuthInfos[0].AuthInfo.Password = canary }, `users[hub].user.password:`},
		"user name":                 {func(c c) { c.AuthInfos[0].AuthInfo.Username = canary }, `users[hub].user.username:`},
		"no credentials":            {func(c c) { c.AuthInfos[0].AuthInfo.Token = "" }, `users[hub].user: Required value`},
		"token with a line break":   {func(c c) { c.AuthInfos[0].AuthInfo.Token = canary + "\r\nHost: other" }, `users[hub].user.token:`},
		"certificate without a key": {func(c c) { c.AuthInfos[0].AuthInfo.ClientCertificateData = certificate }, `users[hub].user.client-certificate-data: Forbidden: client-key-data is missing`},
		"key without a certificate": {func(c c) { c.AuthInfos[0].AuthInfo.ClientKeyData = []byte(canary) }, `users[hub].user.client-key-data: Forbidden: client-certificate-data is missing`},
		"key of another": {func(c c) {
			c.AuthInfos[0].AuthInfo.ClientCertificateData, c.AuthInfos[0].AuthInfo.ClientKeyData = certificate, another
		}, `users[hub].user.client-certificate-data: Forbidden: it is no certificate`},
		"key that is none": {func(c c) {
			c.AuthInfos[0].AuthInfo.ClientCertificateData = certificate
			c.AuthInfos[0].AuthInfo.ClientKeyData = pem.EncodeToMemory(&pem.Block{Type: strings.ToUpper(canary)})
		}, `users[hub].user.client-certificate-data: Forbidden: it is no certificate`},
		"authority that is none":   {func(c c) { c.Clusters[0].Cluster.CertificateAuthorityData = []byte(canary) }, `clusters[site].cluster.certificate-authority-data: Forbidden: it holds no certificate`},
		"no server":                {func(c c) { c.Clusters[0].Cluster.Server = "" }, `clusters[site].cluster.server: Required value`},
		"server without TLS":       {func(c c) { c.Clusters[0].Cluster.Server = "http://edge01" }, `its scheme is "http"`},
		"loopback without TLS":     {func(c c) { c.Clusters[0].Cluster.Server = "http://127.0.0.1:8080" }, `its scheme is "http"`},
		"server without a scheme":  {func(c c) { c.Clusters[0].Cluster.Server = "edge01.example.org" }, `its scheme is ""`},
		"server on the disk":       {func(c c) { c.Clusters[0].Cluster.Server = "file:///etc/passwd" }, `its scheme is "file"`},
		"server with a password":   {func(c c) { c.Clusters[0].Cluster.Server = "https://admin:" + canary + "@edge01" }, `clusters[site].cluster.server: Forbidden: it must have no user`},
		"server with a query":      {func(c c) { c.Clusters[0].Cluster.Server = "https://edge01/?token=" + canary }, `clusters[site].cluster.server: Forbidden: it must have no user`},
		"server with a fragment":   {func(c c) { c.Clusters[0].Cluster.Server = "https://edge01/#" + canary }, `clusters[site].cluster.server: Forbidden: it must have no user`},
		"server without a host":    {func(c c) { c.Clusters[0].Cluster.Server = "https://:6443" }, `it must have a host`},
		"server that is no URL":    {func(c c) { c.Clusters[0].Cluster.Server = "https://" + canary + ":%zz" }, `it is no URL`},
		"no current context":       {func(c c) { c.CurrentContext = "" }, `current-context: Not found: ""`},
		"context that is missing":  {func(c c) { c.CurrentContext = "edge02" }, `current-context: Not found: "edge02"`},
		"cluster that is missing":  {func(c c) { c.Contexts[0].Context.Cluster = "plant" }, `contexts[edge].context.cluster: Not found: "plant"`},
		"user that is missing":     {func(c c) { c.Contexts[0].Context.AuthInfo = "root" }, `contexts[edge].context.user: Not found: "root"`},
		"two users of one name":    {func(c c) { c.AuthInfos = append(c.AuthInfos, c.AuthInfos[0]) }, `users[hub]: Duplicate value`},
		"two clusters of one name": {func(c c) { c.Clusters = append(c.Clusters, c.Clusters[0]) }, `clusters[site]: Duplicate value`},
		"two contexts of one name": {func(c c) { c.Contexts = append(c.Contexts, c.Contexts[0]) }, `contexts[edge]: Duplicate value`},
		"another kind":             {func(c c) { c.Kind = "Secret" }, `kind: Unsupported value: "Secret"`},
		"another version":          {func(c c) { c.APIVersion = "v2" }, `apiVersion: Unsupported value: "v2"`},
		"name with a line break":   {func(c c) { c.Clusters[0].Name = "x\nlevel=INFO msg=fine" }, `clusters[x\nlevel=INFO msg=fine]`},
	}
}

func TestParseRefusesHostileKubeconfigs(t *testing.T) {
	for name, c := range hostile(t) {
		t.Run(name, func(t *testing.T) {
			config, err := Parse(sample(t, func(k *clientcmdapi.Config) {
				c.edit(k)
				if name == "name with a line break" {
					k.Clusters[0].Cluster.ProxyURL = "x"
				}
			}))
			if err == nil {
				t.Fatalf("it is taken: %v", config.Host)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %q, want %q in it", err, c.want)
			}
			if strings.Contains(strings.ToLower(err.Error()), canary) || strings.ContainsAny(err.Error(), "\n\r\x1b") {
				t.Errorf("the error holds a secret or a control character: %q", err)
			}
		})
	}
}

func TestParseRefusesOtherContent(t *testing.T) {
	cases := map[string]struct{ data, want string }{
		"nothing":           {"", `cannot use the kubeconfig: it is empty`},
		"blank":             {"\n", `cannot use the kubeconfig: current-context: Not found: ""`},
		"no YAML":           {"users:\n- name: \"" + canary + "\n", `cannot read the kubeconfig: it is no YAML: see line 3`},
		"a word":            {canary, `cannot read the kubeconfig: it is no YAML or JSON of kind Config`},
		"a list":            {"[" + canary + "]", `cannot read the kubeconfig: it is no YAML or JSON of kind Config`},
		"users not in list": {"users: {name: " + canary + "}", `cannot read the kubeconfig: users must be a slice`},
		"token in a list":   {"users: [{name: hub, user: {token: [" + canary + "]}}]", `cannot read the kubeconfig: users.user.token must be a string`},
		"bytes not encoded": {"users: [{name: hub, user: {client-key-data: " + canary + "}}]", `cannot read the kubeconfig: it is no YAML or JSON of kind Config`},
		"aliases without end": {"a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n" +
			"e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]\n", `it is no YAML or JSON of kind Config`},
		"huge": {"# " + strings.Repeat("x", MaxSize), fmt.Sprintf(`it has %d bytes, and may have %d`, MaxSize+2, MaxSize)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(c.data))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want %q in it", err, c.want)
			}
			if strings.Contains(err.Error(), canary) {
				t.Errorf("the error holds a secret: %q", err)
			}
		})
	}
}

func TestParseListsAllProblems(t *testing.T) {
	_, err := Parse(sample(t, func(c *clientcmdapi.Config) {
		c.Clusters[0].Cluster.ProxyURL, c.Clusters[0].Cluster.InsecureSkipTLSVerify = "http://proxy", true
		c.AuthInfos[0].AuthInfo.TokenFile, c.CurrentContext = "/token", "other"
	}))
	if err == nil {
		t.Fatal("it is taken")
	}
	for _, want := range []string{"clusters[site].cluster.proxy-url", "clusters[site].cluster.insecure-skip-tls-verify", "users[hub].user.tokenFile", `current-context: Not found: "other"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q, want %q in it", err, want)
		}
	}
}

func TestErrorsHaveBoundedLength(t *testing.T) {
	_, err := Parse(sample(t, func(c *clientcmdapi.Config) {
		for i := range 500 {
			c.AuthInfos = append(c.AuthInfos, clientcmdapi.NamedAuthInfo{Name: fmt.Sprint(i, strings.Repeat("\x1b", 150)), AuthInfo: clientcmdapi.AuthInfo{TokenFile: "x"}})
		}
	}))
	if err == nil || len(err.Error()) > 10000 || !strings.Contains(err.Error(), "and 490 problems more") {
		t.Fatalf("error %.200v", err)
	}
}

// TestParseHasNoSideEffects checks that Parse runs no program, reads no file and connects to nothing, even where all of that would work.
func TestParseHasNoSideEffects(t *testing.T) {
	dir := t.TempDir()
	secret, ran := filepath.Join(dir, "secret"), filepath.Join(dir, "ran")
	if err := os.WriteFile(secret, []byte(canary), 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := sample(t, func(c *clientcmdapi.Config) { c.Clusters[0].Cluster.Server = "https://" + listener.Addr().String() })
	if _, err := Parse(server); err != nil {
		t.Fatal(err)
	}
	_, err = Parse(sample(t, func(c *clientcmdapi.Config) {
		c.Clusters[0].Cluster = clientcmdapi.Cluster{Server: "https://" + listener.Addr().String(), CertificateAuthority: secret, ProxyURL: "http://" + listener.Addr().String()}
		c.AuthInfos[0].AuthInfo = clientcmdapi.AuthInfo{TokenFile: secret, ClientKey: secret, Exec: &clientcmdapi.ExecConfig{APIVersion: "client.authentication.k8s.io/v1", Command: "touch", Args: []string{ran}}}
	}))
	if err == nil || strings.Contains(err.Error(), canary) {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("the program was run")
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if connection, err := listener.Accept(); err == nil {
		_ = connection.Close()
		t.Error("the server was connected to")
	}
}

func TestParseAcceptsNew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-z0-9]([a-z0-9+.-]{0,20}[a-z0-9])?`)
		m := Member{Name: word.Draw(t, "name"), Server: "https://" + rapid.StringMatching(`[a-z]{1,20}(:[1-9][0-9]{0,3})?`).Draw(t, "host"), Token: rapid.StringMatching(`[A-Za-z0-9._-]{1,40}`).Draw(t, "token")}
		data, err := New(m)
		if err != nil {
			t.Fatal(err)
		}
		config, err := Parse(data)
		if err != nil {
			t.Fatal(err)
		}
		if token, err := Token(data); err != nil || token != m.Token || config.BearerToken != m.Token || config.Host != m.Server {
			t.Fatalf("token %q, %q, %v; host %q; want %+v", token, config.BearerToken, err, config.Host, m)
		}
	})
}

func TestWithTokenChangesOnlyTheToken(t *testing.T) {
	certificate, _ := newPair(t)
	before := sample(t, func(c *clientcmdapi.Config) {
		c.Clusters[0].Cluster.CertificateAuthorityData, c.Clusters[0].Cluster.TLSServerName = certificate, "edge01"
		c.AuthInfos = append([]clientcmdapi.NamedAuthInfo{{Name: "other", AuthInfo: clientcmdapi.AuthInfo{Token: "others"}}}, c.AuthInfos...)
	})
	changed, err := WithToken(before, "new")
	if err != nil {
		t.Fatal(err)
	}
	var was, is clientcmdapi.Config
	if err := yaml.Unmarshal(before, &was); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(changed, &is); err != nil {
		t.Fatal(err)
	}
	was.AuthInfos[1].AuthInfo.Token = "new"
	if diff := cmp.Diff(was, is); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, data := range map[string][]byte{
		"no YAML": []byte("users: ["),
		"no user": sample(t, func(c *clientcmdapi.Config) { c.CurrentContext = "other" }),
	} {
		if _, err := WithToken(data, "new"); err == nil {
			t.Errorf("%s: there is no error", name)
		}
	}
}

// FuzzParse checks that Parse never panics, that no error contains a secret, and that an accepted configuration names no program, file or proxy.
func FuzzParse(f *testing.F) {
	f.Add([]byte("{}"))
	f.Add(sample(f, nil))
	for _, c := range hostile(f) {
		f.Add(sample(f, c.edit))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		config, err := Parse(data)
		if err != nil {
			if strings.Contains(err.Error(), canary) && !named(data) {
				t.Fatalf("the error holds a secret: %q", err)
			}
			return
		}
		if !strings.HasPrefix(strings.ToLower(config.Host), "https://") {
			t.Fatalf("it is taken: %q", data)
		}
		plain := &rest.Config{
			Host: config.Host, BearerToken: config.BearerToken, UserAgent: config.UserAgent, QPS: config.QPS, Burst: config.Burst,
			RateLimiter: config.RateLimiter, WarningHandler: config.WarningHandler, Transport: config.Transport,
		}
		if !reflect.DeepEqual(plain, config) {
			t.Fatalf("it says more than whom to talk to, and by which token: %v", config)
		}
		if changed, err := WithToken(data, "new"); err != nil {
			t.Fatal(err)
		} else if again, err := Parse(changed); err != nil || again.BearerToken != "new" || again.Host != config.Host {
			t.Fatalf("with another token it is refused or another: %v", err)
		}
	})
}

// named reports whether a kubeconfig has the canary in a name, where it is no secret.
func named(data []byte) bool {
	var c clientcmdapi.Config
	if yaml.Unmarshal(data, &c) != nil {
		return false
	}
	names := []string{c.APIVersion, c.Kind, c.CurrentContext}
	for _, n := range c.Clusters {
		names = append(names, n.Name, n.Cluster.Server)
	}
	for _, n := range c.AuthInfos {
		names = append(names, n.Name)
	}
	for _, n := range c.Contexts {
		names = append(names, n.Name, n.Context.Cluster, n.Context.AuthInfo)
	}
	return strings.Contains(strings.Join(names, "\n"), canary)
}

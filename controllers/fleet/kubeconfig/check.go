package kubeconfig

import (
	"crypto/tls"
	"crypto/x509"
	"net/url"
	"strconv"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/healthscope/healthscope/healthscope"
)

const (
	// maxProblems is the maximum number of problems that an error lists.
	maxProblems = 10
	// maxValueLength is the maximum length of a name or value in an error, in bytes.
	maxValueLength = 100
)

// check validates a kubeconfig, and returns the cluster and the user of its current context, or the problems.
func check(config *clientcmdapi.Config) (*member, field.ErrorList) {
	problems := checkType(config)
	clusters := map[string]clientcmdapi.Cluster{}
	for _, c := range config.Clusters {
		path := field.NewPath("clusters").Key(sanitized(c.Name))
		problems = append(problems, addUnique(clusters, c.Name, c.Cluster, path)...)
		problems = append(problems, checkCluster(path.Child("cluster"), c.Cluster)...)
	}
	users := map[string]clientcmdapi.AuthInfo{}
	for _, u := range config.AuthInfos {
		path := field.NewPath("users").Key(sanitized(u.Name))
		problems = append(problems, addUnique(users, u.Name, u.AuthInfo, path)...)
		problems = append(problems, checkUser(path.Child("user"), u.AuthInfo)...)
	}
	contexts := map[string]clientcmdapi.Context{}
	for _, c := range config.Contexts {
		problems = append(problems, addUnique(contexts, c.Name, c.Context, field.NewPath("contexts").Key(sanitized(c.Name)))...)
	}

	path := field.NewPath("current-context")
	current, ok := contexts[config.CurrentContext]
	if !ok {
		return nil, append(problems, field.NotFound(path, sanitized(config.CurrentContext)))
	}
	path = field.NewPath("contexts").Key(sanitized(config.CurrentContext)).Child("context")
	m := &member{}
	if m.cluster, ok = clusters[current.Cluster]; !ok {
		problems = append(problems, field.NotFound(path.Child("cluster"), sanitized(current.Cluster)))
	}
	if m.user, ok = users[current.AuthInfo]; !ok {
		problems = append(problems, field.NotFound(path.Child("user"), sanitized(current.AuthInfo)))
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return m, m.readCertificates(current)
}

func checkType(config *clientcmdapi.Config) field.ErrorList {
	var problems field.ErrorList
	if config.APIVersion != "" && config.APIVersion != "v1" {
		problems = append(problems, field.NotSupported(field.NewPath("apiVersion"), sanitized(config.APIVersion), []string{"v1"}))
	}
	if config.Kind != "" && config.Kind != "Config" {
		problems = append(problems, field.NotSupported(field.NewPath("kind"), sanitized(config.Kind), []string{"Config"}))
	}
	return problems
}

// addUnique adds a value to a map, and returns an error when the name is in the map already.
func addUnique[T any](into map[string]T, name string, value T, path *field.Path) field.ErrorList {
	if _, ok := into[name]; ok {
		return field.ErrorList{field.Duplicate(path, sanitized(name))}
	}
	into[name] = value
	return nil
}

// forbiddenField is a field that must not be set, and why. set reports whether it is set.
type forbiddenField struct {
	set    bool
	field  string
	reason string
}

// checkForbidden returns an error for each field that is set.
func checkForbidden(path *field.Path, fields []forbiddenField) field.ErrorList {
	var problems field.ErrorList
	for _, r := range fields {
		if r.set {
			problems = append(problems, field.Forbidden(path.Child(r.field), r.reason))
		}
	}
	return problems
}

func checkCluster(path *field.Path, c clientcmdapi.Cluster) field.ErrorList {
	problems := checkForbidden(path, []forbiddenField{
		{c.CertificateAuthority != "", "certificate-authority", "the hub reads no files: use certificate-authority-data"},
		{c.InsecureSkipTLSVerify, "insecure-skip-tls-verify", "the hub talks to servers only that it can verify: use certificate-authority-data"},
		{c.ProxyURL != "", "proxy-url", "the hub goes through no proxy"},
	})
	return append(problems, checkServer(path.Child("server"), c.Server)...)
}

// checkServer validates the URL of an API server. Errors do not show a URL with user information or a query, because both may be secret.
func checkServer(path *field.Path, server string) field.ErrorList {
	if server == "" {
		return field.ErrorList{field.Required(path, "it must be an https URL")}
	}
	u, err := url.Parse(server)
	switch {
	case err != nil:
		return field.ErrorList{field.Forbidden(path, "it is no URL")}
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return field.ErrorList{field.Forbidden(path, "it must have no user, password, query or fragment")}
	case u.Scheme != "https":
		return field.ErrorList{field.Forbidden(path, "it must be an https URL, also on the hub's own machine; its scheme is "+strconv.Quote(sanitized(u.Scheme)))}
	case u.Hostname() == "":
		return field.ErrorList{field.Forbidden(path, "it must have a host")}
	default:
		return nil
	}
}

func checkUser(path *field.Path, u clientcmdapi.AuthInfo) field.ErrorList {
	problems := checkForbidden(path, []forbiddenField{
		{u.Exec != nil, "exec", "the hub runs no programs: use a token"},
		{u.AuthProvider != nil, "auth-provider", "the hub has no authentication plugins: use a token"},
		{u.ClientCertificate != "", "client-certificate", "the hub reads no files: use client-certificate-data"},
		{u.ClientKey != "", "client-key", "the hub reads no files: use client-key-data"},
		{u.TokenFile != "", "tokenFile", "the hub reads no files: use token"},
		{u.Impersonate != "", "as", "the hub speaks for itself"},
		{u.ImpersonateUID != "", "as-uid", "the hub speaks for itself"},
		{len(u.ImpersonateGroups) > 0, "as-groups", "the hub speaks for itself"},
		{len(u.ImpersonateUserExtra) > 0, "as-user-extra", "the hub speaks for itself"},
		{u.Username != "", "username", "API servers take no passwords since Kubernetes 1.19: use a token"},
		{u.Password != "", "password", "API servers take no passwords since Kubernetes 1.19: use a token"},
		{strings.ContainsFunc(u.Token, func(r rune) bool { return r <= ' ' || r > '~' }), "token", "it must not hold spaces, line breaks or other characters that no token has"},
		{len(u.ClientCertificateData) > 0 && len(u.ClientKeyData) == 0, "client-certificate-data", "client-key-data is missing"},
		{len(u.ClientKeyData) > 0 && len(u.ClientCertificateData) == 0, "client-key-data", "client-certificate-data is missing"},
	})
	if len(problems) == 0 && u.Token == "" && len(u.ClientCertificateData) == 0 {
		problems = append(problems, field.Required(path, "it must have a token, or client-certificate-data and client-key-data"))
	}
	return problems
}

// readCertificates reads the certificates of the current context. It does not return errors of the libraries, because they may quote what they read.
func (m *member) readCertificates(current clientcmdapi.Context) field.ErrorList {
	var problems field.ErrorList
	if data := m.cluster.CertificateAuthorityData; len(data) > 0 {
		m.authorities = x509.NewCertPool()
		if !m.authorities.AppendCertsFromPEM(data) {
			path := field.NewPath("clusters").Key(sanitized(current.Cluster)).Child("cluster", "certificate-authority-data")
			problems = append(problems, field.Forbidden(path, "it holds no certificate in PEM"))
		}
	}
	if data := m.user.ClientCertificateData; len(data) > 0 {
		certificate, err := tls.X509KeyPair(data, m.user.ClientKeyData)
		if err != nil {
			path := field.NewPath("users").Key(sanitized(current.AuthInfo)).Child("user", "client-certificate-data")
			problems = append(problems, field.Forbidden(path, "it is no certificate in PEM that belongs to client-key-data"))
		}
		m.certificates = []tls.Certificate{certificate}
	}
	return problems
}

// aggregate returns the problems as one error, which lists maxProblems at most.
func aggregate(problems field.ErrorList) error {
	if len(problems) <= maxProblems {
		return problems.ToAggregate()
	}
	return errors.Errorf("%v and %d problems more", problems[:maxProblems].ToAggregate(), len(problems)-maxProblems)
}

// sanitized returns a name or value for use in an error: with control characters escaped, and shortened to maxValueLength.
func sanitized(s string) string {
	quoted := strconv.Quote(healthscope.Shorten(s, maxValueLength))
	return quoted[1 : len(quoted)-1]
}

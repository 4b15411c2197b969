package client

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"
)

// Defaults of Options.
const (
	// DefaultSchemaVersion is the newest version of the A&AI schema.
	DefaultSchemaVersion = "v32"
	// DefaultTimeout is the deadline of one request.
	DefaultTimeout = 30 * time.Second
	// DefaultAppID is the name of this project in A&AI.
	DefaultAppID = "HealthScope"
	// DefaultPageSize is the number of documents in a page of a list.
	DefaultPageSize = 500
)

// Options are the address of an A&AI and the settings of its client.
type Options struct {
	// BaseURL is scheme, host and port, such as https://aai.onap:8443. The path /aai is added.
	BaseURL string
	// SchemaVersion is the version of the schema in paths, v24 or later. The default is DefaultSchemaVersion.
	SchemaVersion string
	// Credentials returns the user and password for basic authentication. The client calls it before every request, so that they can change. Nil means none.
	Credentials func() (user, password string, err error)
	// CAFile is a file with the certificates, in PEM, of the authorities that A&AI's certificate is checked against. The default is the system's. It is not used with Transport.
	CAFile string
	// CertFile and KeyFile are files with our own certificate and its key, in PEM, for an A&AI that wants one. Both or neither must be set. Like CAFile, they are read again when they change, and not used with Transport.
	CertFile, KeyFile string
	// Timeout is the deadline of one request, from its start to the last byte of the answer. The default is DefaultTimeout.
	Timeout time.Duration
	// AppID is sent as X-FromAppId and becomes the source of truth in A&AI. The default is DefaultAppID.
	AppID string
	// PageSize is the number of documents in a page of a list. The default is DefaultPageSize.
	PageSize int
	// Leads reports whether this process may still write. The client calls it immediately before it sends a write, because a process that was suspended must not write outdated state. Nil means that it may.
	Leads func() bool
	// Observe is called after every request, with the HTTP status as text, or "error" when there was no response, and the duration. Nil means no call.
	Observe func(op, code string, duration time.Duration)
	// Breaker is shared by all clients of this A&AI. Nil means none: every request is sent.
	Breaker *Breaker
	// Wrap returns a transport that sends requests through the given one, for example to trace them. Nil means that the given transport is used as it is.
	Wrap func(http.RoundTripper) http.RoundTripper
	// Transport sends the requests. The default verifies certificates, and reloads its files when they change.
	Transport http.RoundTripper
}

// schemaVersion matches the versions whose schema has k8s-resource.
var schemaVersion = regexp.MustCompile(`^v(2[4-9]|[3-9][0-9])$`)

// setDefaults sets the defaults of options that are not set.
func (o *Options) setDefaults() {
	o.SchemaVersion = cmp.Or(o.SchemaVersion, DefaultSchemaVersion)
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	o.AppID = cmp.Or(o.AppID, DefaultAppID)
	o.PageSize = cmp.Or(o.PageSize, DefaultPageSize)
	if o.Leads == nil {
		o.Leads = func() bool { return true }
	}
	if o.Wrap == nil {
		o.Wrap = func(transport http.RoundTripper) http.RoundTripper { return transport }
	}
	if o.Observe == nil {
		o.Observe = func(string, string, time.Duration) {}
	}
}

// validate returns an error for the first invalid option.
func (o *Options) validate() error {
	u, err := url.Parse(o.BaseURL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return errors.New("BaseURL must be an http or https URL, such as https://aai.onap:8443")
	case u.User != nil:
		return fmt.Errorf("BaseURL %q must not hold a user or password", u.Redacted())
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("BaseURL %q must be scheme, host and port only", o.BaseURL)
	case !schemaVersion.MatchString(o.SchemaVersion):
		return fmt.Errorf("SchemaVersion %q must be v24 or later: earlier versions have no k8s-resource", o.SchemaVersion)
	case o.Timeout < 0:
		return fmt.Errorf("timeout %s must not be negative", o.Timeout)
	case (o.CertFile == "") != (o.KeyFile == ""):
		return errors.New("CertFile and KeyFile must both be set, or neither")
	case o.PageSize < 0:
		return fmt.Errorf("page size %d must not be negative", o.PageSize)
	}
	return nil
}

// FileCredentials returns a function for Options.Credentials that reads user and password from files, each time, without the white space around them. An empty user is an error.
func FileCredentials(userFile, passwordFile string) func() (user, password string, err error) {
	return func() (user, password string, err error) {
		if user, err = readSecret(userFile); err != nil {
			return "", "", err
		}
		if user == "" || strings.Contains(user, ":") {
			return "", "", fmt.Errorf("cannot use the user name in file %q: it is empty or has a colon in it", userFile)
		}
		password, err = readSecret(passwordFile)
		return user, password, err
	}
}

func readSecret(file string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("cannot read credentials: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

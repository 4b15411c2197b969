package client

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/go-resty/resty/v2"

	"github.com/healthscope/healthscope/aai"
)

// maxRetryAfter is the maximum pause that A&AI can request.
const maxRetryAfter = time.Hour

// maxMessage is the maximum length of a text from A&AI that is kept, in runes.
const maxMessage = 500

// errorCode matches A&AI's error codes. The position of the code in the list of variables depends on the error; the message precedes the code.
var errorCode = regexp.MustCompile(`^(ERR\.)?\d\.\d\.\d{4}$`)

// transportError returns the error for a request that got no response, or an incomplete one.
func transportError(req request, id string, cause error) error {
	e := &aai.Error{Op: req.op, URI: req.path, Kind: aai.Retry, TransactionID: id, Message: "no answer", Err: cause}
	if urlErr, ok := errors.AsType[*url.Error](cause); ok { // its text repeats the whole URL
		e.Err = urlErr.Err
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](cause); ok {
		e.Kind, e.Problem, e.Message = aai.Misconfigured, aai.ProblemCertificate, "A&AI's certificate cannot be trusted"
	}
	// This is how crypto/tls reports an alert from the peer.
	if alert, ok := errors.AsType[*net.OpError](cause); ok && alert.Op == "remote error" && certificateAlert.MatchString(alert.Err.Error()) {
		e.Kind, e.Problem, e.Message = aai.Misconfigured, aai.ProblemCertificate, "A&AI refuses our certificate, or wants one"
	}
	if errors.Is(cause, resty.ErrResponseBodyTooLarge) {
		e.Kind, e.Problem, e.Message = aai.Misconfigured, aai.ProblemServer, fmt.Sprintf("the answer is longer than %d bytes", maxResponseBytes)
	}
	return e
}

// responseError returns the error for a response other than 2xx.
func responseError(req request, id, version string, response *resty.Response) error {
	e := parseError(response.Body())
	e.Op, e.URI, e.TransactionID = req.op, req.path, id
	e.Status = response.StatusCode()
	e.Kind = classify(e)
	e.RetryAfter = retryAfter(response.Header().Get("Retry-After"), time.Now())
	problem, explanation := explain(e, version, response.Header())
	if e.Kind == aai.Misconfigured {
		e.Problem = problem
	}
	if explanation != "" && (e.Kind == aai.Misconfigured || e.MessageID == "") {
		e.Message = strings.TrimSuffix(explanation+": "+e.Message, ": ")
	}
	return e
}

// parseError parses A&AI's error body. It returns an empty error for any other body, such as a proxy's page.
func parseError(body []byte) *aai.Error {
	type exception struct {
		MessageID string            `json:"messageId"`
		Text      string            `json:"text"`
		Variables []json.RawMessage `json:"variables"`
	}
	var response struct {
		RequestError struct {
			Service *exception `json:"serviceException"`
			Policy  *exception `json:"policyException"`
		} `json:"requestError"`
	}
	e := &aai.Error{}
	if err := json.Unmarshal(body, &response); err != nil {
		return e
	}
	found := response.RequestError.Service
	if found == nil {
		found = response.RequestError.Policy
	}
	if found == nil {
		return e
	}
	e.MessageID, e.Message = sanitize(found.MessageID), sanitize(found.Text)
	var previous string
	for _, raw := range found.Variables {
		var variable string
		if err := json.Unmarshal(raw, &variable); err != nil {
			variable = string(raw)
		}
		if errorCode.MatchString(variable) {
			e.Code, e.Message = variable, sanitize(previous)
			break
		}
		previous = variable
	}
	return e
}

// sanitize returns an untrusted text as one printable line of at most maxMessage runes and an ellipsis.
func sanitize(text string) string {
	runes := []rune(strings.ToValidUTF8(strings.TrimSpace(text), "�"))
	if len(runes) > maxMessage {
		runes = append(runes[:maxMessage], '…')
	}
	for i, r := range runes {
		if !unicode.IsPrint(r) {
			runes[i] = ' '
		}
	}
	return string(runes)
}

// codesByKind holds A&AI's error codes by kind, without the prefix "ERR.". They take precedence over the HTTP status, which A&AI uses inconsistently.
var codesByKind = map[aai.ErrorKind][]string{
	aai.Retry:             {"5.4.4000", "5.4.6134", "5.4.6142", "5.4.7406", "5.4.5105"},
	aai.Conflict:          {"5.4.6130", "5.4.6131", "5.4.6135"},
	aai.MissingDependency: {"5.4.6129"},
	aai.Rejected:          {"5.4.6137", "5.4.6138", "5.4.6140"},
}

// certificateAlert matches the alerts about a client certificate. Servers of TLS 1.2 also send "handshake failure" when they want one.
// OpenSSL sends "error decrypting message" when the signature is not that of the authority with the issuer's name.
var certificateAlert = regexp.MustCompile("certificate|handshake failure|access denied|error decrypting message")

// configurationCode matches A&AI's error codes about request headers.
var configurationCode = regexp.MustCompile(`^4\.0\.40\d\d$`)

// classify returns the kind of an error by its operation, status, code and message id. It never uses the text of the message.
func classify(e *aai.Error) aai.ErrorKind {
	code := strings.TrimPrefix(e.Code, "ERR.")
	for kind, codes := range codesByKind {
		if slices.Contains(codes, code) {
			return kind
		}
	}
	switch {
	case configurationCode.MatchString(code) || e.MessageID == "SVC3016":
		return aai.Misconfigured
	case e.Code == aai.CodeNodeNotFound && e.Op == aai.OpPut:
		return aai.MissingDependency // OpPut creates, so the object that was not found is the parent
	case e.Code == aai.CodeNodeNotFound || e.Status == http.StatusPreconditionFailed:
		return aai.Conflict
	}
	return classifyStatus(e)
}

// classifyStatus returns the kind of an error by its HTTP status and message id.
func classifyStatus(e *aai.Error) aai.ErrorKind {
	switch s := e.Status; {
	case s >= 500 || s == http.StatusRequestTimeout || s == http.StatusTooManyRequests || s == http.StatusTooEarly:
		return aai.Retry
	case s < 400, s == http.StatusUnauthorized, s == http.StatusForbidden, s == http.StatusProxyAuthRequired,
		s == http.StatusGone, s == http.StatusMethodNotAllowed, s == http.StatusNotAcceptable, s == http.StatusUnsupportedMediaType:
		return aai.Misconfigured
	case s == http.StatusNotFound && e.MessageID == "":
		return aai.Misconfigured // A&AI sends a message id with a 404; this is another server
	default:
		return aai.Rejected
	}
}

// explain returns what an operator has to repair if an error means that, and a plain explanation for when A&AI's message is not enough, which is empty
// when there is none.
func explain(e *aai.Error, version string, header http.Header) (problem aai.Problem, explanation string) {
	switch s := e.Status; {
	case e.MessageID == "SVC3016" || s == http.StatusGone:
		return aai.ProblemVersion, fmt.Sprintf("A&AI does not serve schema version %q", version)
	case s == http.StatusUnauthorized || s == http.StatusForbidden:
		return aai.ProblemCredentials, "A&AI refuses the user or the password"
	case s < 400:
		return aai.ProblemServer, fmt.Sprintf("A&AI redirects to %q, which is not followed", redirectHost(header))
	case s == http.StatusNotFound:
		return aai.ProblemServer, "the server does not know the path as A&AI does"
	case e.MessageID == "":
		return aai.ProblemServer, http.StatusText(s)
	default:
		return aai.ProblemServer, ""
	}
}

// redirectHost returns the scheme and host of a redirect. It leaves out the rest, which could contain a secret.
func redirectHost(header http.Header) string {
	u, err := url.Parse(header.Get("Location"))
	if err != nil || u.Host == "" {
		return "another path"
	}
	return u.Scheme + "://" + u.Host
}

// retryAfter parses the header Retry-After, in seconds or as an HTTP date. It returns zero if the value is invalid or in the past, and at most maxRetryAfter.
func retryAfter(value string, now time.Time) time.Duration {
	var wait time.Duration
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		wait = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(value); err == nil {
		wait = at.Sub(now)
	}
	return min(max(wait, 0), maxRetryAfter)
}

// isAbsent reports whether an error of a GET means that the object does not exist. A&AI answers in the same way for an empty list.
func isAbsent(err error) bool {
	e, ok := errors.AsType[*aai.Error](err)
	return ok && e.Status == http.StatusNotFound && e.Code == aai.CodeNodeNotFound
}

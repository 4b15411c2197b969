package fleet

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/healthscope/healthscope/controllers/fleet/kubeconfig"
	"github.com/healthscope/healthscope/controllers/observe"
)

// minTryTimeout is how long an API server may take at least to say whether it accepts a token.
const minTryTimeout = 10 * time.Second

// errUnauthorized is why a cluster cannot be read with credentials that are not accepted.
var errUnauthorized = errors.New("the API server does not accept the credentials (401 Unauthorized): the token or the certificate may have expired")

// renewal is a new token for the connection in use. It is tried until the API server accepts it, and not used before.
type renewal struct {
	connection *connection
	token      string
	cancel     context.CancelFunc
}

// attempt is how a try of a new token has ended.
type attempt struct {
	renewal *renewal
	err     error
}

// useToken makes a configuration send a Token that can be changed, in place of the token that it has; nil when it has none, or reads it from a file.
func useToken(config *rest.Config) *observe.Token {
	if config.BearerToken == "" || config.BearerTokenFile != "" {
		return nil
	}
	token := observe.NewToken(config.BearerToken)
	config.BearerToken = ""
	config.Wrap(transport.TokenSourceWrapTransport(token))
	return token
}

// renewedToken returns the token of a spec that differs from another one in its token only; empty when it differs in more.
func (w clusterSpec) renewedToken(o clusterSpec) string {
	if w.problem != "" || o.problem != "" || !slices.Equal(w.namespaces, o.namespaces) {
		return ""
	}
	token, err := kubeconfig.Token(w.kubeconfig)
	if err != nil {
		return ""
	}
	before, err := kubeconfig.WithToken(o.kubeconfig, token)
	if err != nil {
		return ""
	}
	if after, err := kubeconfig.WithToken(w.kubeconfig, token); err != nil || !bytes.Equal(before, after) {
		return ""
	}
	return token
}

// renew begins to try a new token for the connection in use.
func (m *member) renew(ctx context.Context, token string) {
	m.endRenewal()
	m.disconnect(m.next)
	m.next, m.rotationProblem, m.refused = nil, "", ""
	ctx, cancel := context.WithCancel(ctx)
	r := &renewal{connection: m.current, token: token, cancel: cancel}
	m.renewal = r
	m.running.Go(func() {
		for pause := time.Duration(0); ctx.Err() == nil; {
			deadline, cancel := context.WithTimeout(ctx, max(m.hub.timeout(), minTryTimeout))
			err := probe(deadline, r.connection.config, r.connection.http, r.token)
			cancel()
			select {
			case m.attempts <- attempt{r, err}:
			case <-ctx.Done():
			}
			if err == nil {
				return
			}
			pause = nextPause(pause, maxProbePause)
			select {
			case <-m.hub.clock.After(jittered(pause)):
			case <-ctx.Done():
			}
		}
	})
}

// renewed takes a new token into use that the API server accepts, and reports one that it does not.
func (m *member) renewed(a attempt) {
	r := a.renewal
	switch {
	case r != m.renewal || r.connection != m.current: // It is out of date.
	case a.err == nil:
		r.connection.token.Set(r.token)
		r.cancel()
		m.renewal = nil
		m.rotated()
		m.logger.Info("Token renewed")
	default:
		m.rotationFails(a.err.Error())
	}
}

// endRenewal stops trying a new token, because the spec has changed.
func (m *member) endRenewal() {
	if m.renewal != nil {
		m.renewal.cancel()
		m.renewal = nil
	}
}

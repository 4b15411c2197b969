package observe

import (
	"sync/atomic"

	"golang.org/x/oauth2"
)

// Token is the bearer token of a client. It can be changed while the client is in use: the next request has the new token.
// An open watch keeps its old token, and the API server does not close it. Token implements oauth2.TokenSource.
type Token struct{ current atomic.Pointer[oauth2.Token] }

// NewToken returns a Token.
func NewToken(token string) *Token {
	t := &Token{}
	t.Set(token)
	return t
}

// Token implements oauth2.TokenSource. The token has no expiry, because client-go sends an expired token too.
func (t *Token) Token() (*oauth2.Token, error) { return t.current.Load(), nil }

// Set changes the token.
func (t *Token) Set(token string) { t.current.Store(&oauth2.Token{AccessToken: token}) }

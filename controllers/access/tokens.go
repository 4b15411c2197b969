package access

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"

	"github.com/healthscope/healthscope/healthscope/api"
)

// Bounds on what callers that are not authenticated yet can make the API server and this program do.
const (
	// rejectedPerSecond is how many tokens that are not accepted a source may try in a second, and rejectedBurst how many at once.
	rejectedPerSecond, rejectedBurst = 1, 20
	// maxReviews bounds the TokenReviews that are in flight, and maxWaiting the callers that wait for them.
	maxReviews, maxWaiting = 32, 256
	// maxCachedTokens bounds the cached tokens, and maxCachedSources the cached sources. The least recently used are evicted.
	maxCachedTokens, maxCachedSources = 8192, 4096
	// acceptedTTL is how long a token that was accepted is exempt from the limit of its source.
	acceptedTTL = time.Hour
)

// identity is the caller that a token belongs to; known is false when the API server does not accept the token.
type identity struct {
	caller api.Caller
	known  bool
}

// authenticator finds the callers that tokens belong to, and caches them. It is safe for concurrent use.
type authenticator struct {
	review func(ctx context.Context, token string) (api.Caller, bool, error)
	clock  clock.PassiveClock
	// identities are by token, accepted holds the tokens that were accepted, which rejected ones must not evict, and sources the
	// limiter of each source.
	identities, accepted, sources *cache.LRUExpireCache
	// inFlight makes concurrent callers with the same token share one review.
	inFlight singleflight.Group
	// reviews bounds the TokenReviews that are in flight, and waiting the callers that wait for them.
	reviews, waiting *semaphore.Weighted
}

func newAuthenticator(review func(ctx context.Context, token string) (api.Caller, bool, error), now clock.PassiveClock) *authenticator {
	lru := func(size int) *cache.LRUExpireCache { return cache.NewLRUExpireCacheWithClock(size, now) }
	return &authenticator{
		review: review, clock: now, identities: lru(maxCachedTokens), accepted: lru(maxCachedTokens), sources: lru(maxCachedSources),
		reviews: semaphore.NewWeighted(maxReviews), waiting: semaphore.NewWeighted(maxWaiting),
	}
}

// authenticate returns the caller that a token belongs to. A cached token needs no review, and a token that was accepted within
// acceptedTTL is not subject to the limit of its source.
func (a *authenticator) authenticate(ctx context.Context, source, token string) (api.Caller, bool, error) {
	key := sha256.Sum256([]byte(token))
	if v, ok := lookup[identity](a.identities, key); ok {
		return v.caller, v.known, nil
	}
	limiter := a.limiterOf(source)
	if _, accepted := a.accepted.Get(key); !accepted && limiter.TokensAt(a.clock.Now()) < 1 {
		return api.Caller{}, false, fmt.Errorf("%w: too many tokens that are not accepted have come from your address; try again", api.ErrTooMany)
	}
	if !a.waiting.TryAcquire(1) {
		return api.Caller{}, false, fmt.Errorf("%w: %d requests wait already for the Kubernetes API server to say whose their tokens are; try again", api.ErrBusy, maxWaiting)
	}
	defer a.waiting.Release(1)
	shared := context.WithoutCancel(ctx) // Others may wait for the same answer.
	answer := a.inFlight.DoChan(string(key[:]), func() (any, error) { return a.reviewAndCache(shared, key, token, limiter) })
	select {
	case <-ctx.Done():
		return api.Caller{}, false, ctx.Err()
	case result := <-answer:
		v, _ := result.Val.(identity)
		return v.caller, v.known, result.Err
	}
}

// reviewAndCache reviews a token and caches the result.
func (a *authenticator) reviewAndCache(ctx context.Context, key [sha256.Size]byte, token string, limiter *rate.Limiter) (identity, error) {
	if !a.reviews.TryAcquire(1) {
		return identity{}, fmt.Errorf("%w: %d tokens are being reviewed already; try again", api.ErrBusy, maxReviews)
	}
	defer a.reviews.Release(1)
	caller, known, err := a.review(ctx, token)
	if err != nil {
		return identity{}, err
	}
	v := identity{caller: caller, known: known}
	if known {
		a.accepted.Add(key, true, acceptedTTL)
		a.identities.Add(key, v, allowedTTL)
		return v, nil
	}
	limiter.AllowN(a.clock.Now(), 1)
	a.accepted.Remove(key)
	a.identities.Add(key, v, deniedTTL)
	return v, nil
}

// limiterOf returns the limiter of a source. A source that was evicted from the cache gets a new one.
func (a *authenticator) limiterOf(source string) *rate.Limiter {
	if l, ok := lookup[*rate.Limiter](a.sources, source); ok {
		return l
	}
	l := rate.NewLimiter(rejectedPerSecond, rejectedBurst)
	a.sources.Add(source, l, acceptedTTL)
	return l
}

func lookup[V any](c *cache.LRUExpireCache, key any) (V, bool) {
	v, _ := c.Get(key)
	value, ok := v.(V)
	return value, ok
}

// sourcePrefixBits is the length of the IPv6 prefix that identifies a source: a host usually has all addresses of its network.
const sourcePrefixBits = 64

// sourceOf returns the source of a request: its address, or for IPv6 its network.
func sourceOf(r *http.Request) string {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	address := at.Addr().Unmap().WithZone("")
	if network, err := address.Prefix(sourcePrefixBits); err == nil && address.Is6() {
		return network.String()
	}
	return address.String()
}

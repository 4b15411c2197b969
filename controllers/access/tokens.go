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

// Bounds of what callers can make the API server, and this program, do before anybody knows who they are.
const (
	// wrongTokens is how many tokens in a second, and wrongTokensAtOnce how many at once, a source may try that are not accepted.
	wrongTokens, wrongTokensAtOnce = 1, 20
	// maxReviews is how many TokenReviews are under way at once, and maxWaiting how many callers wait for them.
	maxReviews, maxWaiting = 32, 256
	// maxTokens is how many tokens are remembered, and maxSources how many sources. Of more, those that were not seen for longest are forgotten.
	maxTokens, maxSources = 8192, 4096
	// familiarTime is how long a token that was good is none that a source tries.
	familiarTime = time.Hour
)

// identity is whose a token is; known is false when the API server does not accept it.
type identity struct {
	caller api.Caller
	known  bool
}

// tokens finds out whose tokens are, and keeps the answers for a while. It is safe for concurrent use.
type tokens struct {
	review func(ctx context.Context, token string) (api.Caller, bool, error)
	clock  clock.PassiveClock
	// identities are kept by token, and familiar those tokens that were good. sources have a limiter each.
	identities, familiar, sources *cache.LRUExpireCache
	// flights make callers with the same token ask once.
	flights singleflight.Group
	// reviews bounds the TokenReviews that are under way, and waiting the callers that wait for them.
	reviews, waiting *semaphore.Weighted
}

func newTokens(review func(ctx context.Context, token string) (api.Caller, bool, error), now clock.PassiveClock) *tokens {
	lru := func(size int) *cache.LRUExpireCache { return cache.NewLRUExpireCacheWithClock(size, now) }
	return &tokens{
		review: review, clock: now, identities: lru(maxTokens), familiar: lru(maxTokens), sources: lru(maxSources),
		reviews: semaphore.NewWeighted(maxReviews), waiting: semaphore.NewWeighted(maxWaiting),
	}
}

// authenticate returns who a token belongs to. A token that was good costs nothing while that is remembered, whatever others do meanwhile.
func (t *tokens) authenticate(ctx context.Context, source, token string) (api.Caller, bool, error) {
	key := sha256.Sum256([]byte(token))
	if v, ok := get[identity](t.identities, key); ok {
		return v.caller, v.known, nil
	}
	limiter := t.limiterOf(source)
	if _, familiar := t.familiar.Get(key); !familiar && limiter.TokensAt(t.clock.Now()) < 1 {
		return api.Caller{}, false, fmt.Errorf("%w: too many tokens that are not accepted have come from your address; try again", api.ErrTooMany)
	}
	if !t.waiting.TryAcquire(1) {
		return api.Caller{}, false, fmt.Errorf("%w: %d requests wait already for the Kubernetes API server to say whose their tokens are; try again", api.ErrBusy, maxWaiting)
	}
	defer t.waiting.Release(1)
	shared := context.WithoutCancel(ctx) // Others may wait for the same answer.
	answer := t.flights.DoChan(string(key[:]), func() (any, error) { return t.ask(shared, key, token, limiter) })
	select {
	case <-ctx.Done():
		return api.Caller{}, false, ctx.Err()
	case a := <-answer:
		v, _ := a.Val.(identity)
		return v.caller, v.known, a.Err
	}
}

// ask reviews a token, and remembers what comes of it.
func (t *tokens) ask(ctx context.Context, key [sha256.Size]byte, token string, limiter *rate.Limiter) (identity, error) {
	if !t.reviews.TryAcquire(1) {
		return identity{}, fmt.Errorf("%w: %d tokens are being reviewed already; try again", api.ErrBusy, maxReviews)
	}
	defer t.reviews.Release(1)
	caller, known, err := t.review(ctx, token)
	if err != nil {
		return identity{}, err
	}
	v := identity{caller: caller, known: known}
	if known {
		t.familiar.Add(key, true, familiarTime)
		t.identities.Add(key, v, allowedTime)
		return v, nil
	}
	limiter.AllowN(t.clock.Now(), 1)
	t.familiar.Remove(key)
	t.identities.Add(key, v, deniedTime)
	return v, nil
}

// limiterOf returns the limiter of a source. One that was dropped for want of room begins again.
func (t *tokens) limiterOf(source string) *rate.Limiter {
	if l, ok := get[*rate.Limiter](t.sources, source); ok {
		return l
	}
	l := rate.NewLimiter(wrongTokens, wrongTokensAtOnce)
	t.sources.Add(source, l, familiarTime)
	return l
}

func get[V any](c *cache.LRUExpireCache, key any) (V, bool) {
	v, _ := c.Get(key)
	value, ok := v.(V)
	return value, ok
}

// sourceBits is how much of an IPv6 address distinguishes sources: a host usually has all of its network.
const sourceBits = 64

// sourceOf returns where a request comes from: its address, or for IPv6 the network.
func sourceOf(r *http.Request) string {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	address := at.Addr().Unmap().WithZone("")
	if network, err := address.Prefix(sourceBits); err == nil && address.Is6() {
		return network.String()
	}
	return address.String()
}

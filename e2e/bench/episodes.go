package main

import (
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/healthscope/healthscope/aai/simulator"
)

// trouble is a kind of what goes wrong during a soak.
type trouble string

// The troubles.
const (
	// troubleAPIServer is that the API server is killed and started again.
	troubleAPIServer trouble = "API server restarted"
	// troubleKill is that the replica that leads is killed without warning, so that the other has to wait until its Lease is over.
	troubleKill trouble = "leader killed"
	// troubleStop is that the replica that leads is asked to end, as in a rollout.
	troubleStop trouble = "leader stopped"
	// troubleLease is that somebody else takes the Lease of the replica that leads.
	troubleLease trouble = "Lease taken away"
	// troubleBegin is that all replicas are started for the first time, at the same time.
	troubleBegin trouble = "all replicas started"
	// troubleEnd is that all replicas are asked to end, when all is over.
	troubleEnd trouble = "all replicas stopped"
)

// What A&AI does wrong.
const (
	troubleErrors   trouble = "A&AI answers 500"
	troubleRestarts trouble = "A&AI answers 503"
	troubleLimits   trouble = "A&AI answers 429"
	troubleVersions trouble = "A&AI answers 412"
	troubleSlow     trouble = "A&AI is slow"
	troubleResets   trouble = "A&AI resets connections"
	troubleUnheard  trouble = "A&AI resets connections after it has written"
	troubleHangs    trouble = "A&AI hangs"
)

// inventoryFaults are the rules for the simulated A&AI. All of them end with the episode; some hit every other request only, so that passes fail in part.
var inventoryFaults = map[trouble][]simulator.Fault{
	troubleErrors:   {{Status: 500, Probability: 0.5}},
	troubleRestarts: {{Status: 503}},
	troubleLimits:   {{Status: 429, RetryAfter: "2"}},
	troubleVersions: {
		{Operation: "**", Code: versionMismatch, Probability: 0.5},
		{Method: http.MethodPut, Code: versionMismatch, Probability: 0.5},
		{Method: http.MethodDelete, Code: versionMismatch, Probability: 0.5},
	},
	troubleSlow:    {{Delay: 1500 * time.Millisecond}},
	troubleResets:  {{Drop: simulator.DropBeforeCommit, Manner: simulator.MannerReset, Probability: 0.5}},
	troubleUnheard: {{Drop: simulator.DropAfterCommit, Manner: simulator.MannerReset, Probability: 0.5}},
	troubleHangs:   {{Drop: simulator.DropBeforeCommit, Manner: simulator.MannerHang}},
}

// versionMismatch is A&AI's error for a write with a resource-version that is not the current one, HTTP 412.
const versionMismatch = "AAI_6131"

// episode is a trouble at a certain time.
type episode struct {
	trouble trouble
	// at is when it begins, from the begin of the soak on; length is how long it lasts, for those that do not end by themselves.
	at, length time.Duration
}

// tracks are the episodes of a soak. Those of a track come one after the other, those of different ones at the same time.
type tracks struct {
	inventory, apiServer []episode
	// leaders are the episodes of the replicas that lead, by program.
	leaders map[string][]episode
}

const (
	// leaderSlot is the time for each change of the leader: longer than a Lease, and time to take it over.
	leaderSlot = 20 * time.Second
	// leadersTime is for how long leaders change at most, however long the soak is.
	leadersTime = 10 * time.Minute
	// inventorySlots is how many episodes of A&AI there are at most, and inventorySlot the least time for each. An episode lasts from a tenth to a third of it.
	inventorySlots = 60
	inventorySlot  = 12 * time.Second
	// apiServerSlot is the time for each restart of the API server.
	apiServerSlot = 2 * time.Minute
)

// soakedPrograms are those that run in two replicas, of which one leads.
func soakedPrograms() []string { return []string{"monitor", "controller"} }

// episodesOf says what goes wrong when in a soak: the same for the same seed and duration. A&AI has troubles until a tenth of
// the time is left, the API server is restarted in the first three quarters of the time, and leaders change in the first half,
// but not for longer than leadersTime: those that lead then live for the rest, 50 minutes of an hour, which tells whether they grow.
func episodesOf(seed uint64, duration time.Duration) tracks {
	t := tracks{leaders: map[string][]episode{}}
	length := max(inventorySlot, duration/inventorySlots)
	t.inventory = cycles(seed, "inventory", duration*9/10, length, []trouble{
		troubleErrors, troubleRestarts, troubleLimits, troubleVersions, troubleSlow, troubleResets, troubleUnheard, troubleHangs,
	})
	t.apiServer = cycles(seed, "API server", duration*3/4, min(apiServerSlot, duration*3/4), []trouble{troubleAPIServer})
	for _, program := range soakedPrograms() {
		t.leaders[program] = cycles(seed, program, min(duration/2, leadersTime), leaderSlot, []trouble{troubleKill, troubleStop, troubleLease})
	}
	return t
}

// cycles fills a time with slots, one episode in each, at a random moment of its first half. Every kind comes once before one comes again, in random order.
func cycles(seed uint64, name string, whole, slot time.Duration, kinds []trouble) []episode {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))                     // It never fails.
	random := rand.New(rand.NewPCG(seed, h.Sum64())) //nolint:gosec // Nothing here is secret.
	var all []episode
	var order []int
	for at := time.Duration(0); at+slot <= whole; at += slot {
		if len(order) == 0 {
			order = random.Perm(len(kinds))
		}
		within := func(d time.Duration) time.Duration { return time.Duration(random.Int64N(int64(d))) }
		all = append(all, episode{trouble: kinds[order[0]], at: at + within(slot/2), length: slot/10 + within(slot*7/30)})
		order = order[1:]
	}
	return all
}

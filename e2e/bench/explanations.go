package main

import (
	"regexp"
	"time"
)

const (
	// soon is how much later than a trouble an error may be logged: the time that a request, or a pass over A&AI, may still be under way.
	soon = 10 * time.Second
	// renewal is how long a leader tries to renew its Lease before it ends, two thirds of the time that a Lease is good for, and the time that
	// it then takes to end and to start again.
	renewal = 20 * time.Second
	// outage is how long the API server must be away at least for a leader to lose its Lease: half of the time that it tries to renew it.
	outage = 5 * time.Second
)

// The troubles that have the same effects.
var (
	cutOff  = []trouble{troubleAPIServer}
	noReply = []trouble{troubleResets, troubleUnheard, troubleHangs}
)

// noAnswer is what clients of the API server say of it while it is away, and soon after, when it begins to answer.
const noAnswer = `connection refused|connection reset by peer|broken pipe|EOF|use of closed network connection|client connection lost|server sent GOAWAY|` +
	`apiserver not ready|the server is currently unable|the server could not find the requested resource|unable to decode an event|context deadline exceeded|Client\.Timeout|` +
	`i/o timeout|unable to return a response in the time allotted|storage is \(re\)initializing|too many requests|Internal error occurred`

// explanations are why errors may be in the logs of programs that are soaked, by which troubles. Whatever else there is in the
// logs is a fault. The patterns are for all of a line after its level; the last words of a process have no fields.
var explanations = []explanation{
	{
		name: "two wanted a Lease at the same time", troubles: []trouble{troubleLease, troubleKill, troubleStop, troubleAPIServer}, others: true, grace: 2 * renewal,
		lines: regexp.MustCompile(`^msg="Failed to (update (lock|lease)|release lease)[^"]*" err=".*the object has been modified`),
	},
	{
		name: "the API server is away: a program that has just started", troubles: cutOff, grace: soon,
		lines: regexp.MustCompile(`^healthscope: cannot run the (monitor|controller): .*(failed to get server groups: unknown$|` + noAnswer + `)`),
	},
	{
		name: "the API server has not read the rights yet", troubles: cutOff, grace: soon,
		lines: regexp.MustCompile(`(is forbidden: User \\?"system:serviceaccount:healthscope-system:healthscope-(controller|monitor)\\?"|Unauthorized)`),
	},
	{
		name: "the Lease was taken away", troubles: []trouble{troubleLease}, grace: renewal,
		lines: regexp.MustCompile(`^healthscope: cannot run the (monitor|controller): leader election lost$`),
	},
	{
		// What a leader asks for at the end of its time to renew is cut off with it, also in the middle of an answer.
		name: "the Lease was taken away: the last look at it", troubles: []trouble{troubleLease}, grace: renewal,
		lines: regexp.MustCompile(`^msg="(Error retrieving lease lock|Unexpected error when reading response body)" err=".*context deadline exceeded"`),
	},
	{
		name: "the API server was away for longer than a Lease is renewed", troubles: cutOff, lasting: outage, grace: renewal,
		lines: regexp.MustCompile(`^healthscope: cannot run the (monitor|controller): leader election lost$`),
	},
	{
		name: "requests were given up by a program that stops", troubles: []trouble{troubleStop, troubleEnd, troubleLease, troubleAPIServer}, grace: renewal,
		lines: regexp.MustCompile(`^msg="[^"]*" .*(context canceled|failed waiting for \*[^ ]* Informer to sync)"$`),
	},
	{
		// controller-runtime's manager reports the end of the leadership that it gives up itself.
		name: "the leadership was given up", troubles: []trouble{troubleStop, troubleEnd}, grace: soon,
		lines: regexp.MustCompile(`^msg="error received after stop sequence was engaged" err="(leader election lost|context canceled)"$`),
	},
	{
		name: "two replicas were the first at the same time", troubles: []trouble{troubleBegin}, grace: soon,
		lines: regexp.MustCompile(`^msg="Error initially creating lease lock" err="leases.coordination.k8s.io \\"healthscope-(monitor|controller)\\" already exists"`),
	},
	inventoryFailed("half of the requests fail", `status 500`, troubleErrors),
	inventoryFailed("it is not available", `status 503`, troubleRestarts),
	inventoryFailed("it limits requests", `status 429`, troubleLimits),
	inventoryFailed("resource-versions are wrong", `(status 412|keeps changing)`, troubleVersions),
	inventoryFailed("connections end", `(connection reset by peer|EOF|broken pipe)`, noReply...),
	inventoryFailed("answers are late", `(context deadline exceeded|Client\.Timeout|the pass took longer)`, troubleSlow, troubleHangs),
	{
		// Of what libraries say when a connection ends there is no list. So this comes last.
		name: "the API server is away: requests", troubles: cutOff, grace: soon,
		lines: regexp.MustCompile(`^msg="[^"]*" .*(` + noAnswer + `)`),
	},
}

// inventoryFailed explains that A&AI could not be brought up to date because of what A&AI did.
func inventoryFailed(name, answer string, troubles ...trouble) explanation {
	return explanation{
		name: "A&AI: " + name, troubles: troubles, grace: soon,
		lines: regexp.MustCompile(`^msg="(Inventory|Modules) not up to date" .*` + answer),
	}
}

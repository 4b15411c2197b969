package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

// explanation describes errors in the logs that faults explain.
type explanation struct {
	name string
	// lines matches the explained lines.
	lines *regexp.Regexp
	// faults are the possible causes. A line is explained from the begin of such a fault until grace after its end.
	faults []fault
	grace  time.Duration
	// lasting is the minimum length of such a fault.
	lasting time.Duration
	// others is true when faults of other replicas also explain the line.
	others bool
}

const (
	// soon is how much later than a fault an error may be logged: a request, or a pass over A&AI, may still be in progress.
	soon = 10 * time.Second
	// renewal is how long a leader tries to renew its Lease, two thirds of the duration of a Lease, plus the time that it then
	// takes to end and to start again.
	renewal = 20 * time.Second
	// outage is the minimum length of an outage of the API server after which a leader loses its Lease: half of the time for
	// which it tries to renew it.
	outage = 5 * time.Second
)

// Faults with the same effects.
var (
	cutOff  = []fault{faultAPIServer}
	noReply = []fault{faultResets, faultUnheard, faultHangs}
)

// noAnswer matches the errors of clients of the API server while it is down, and soon after, when it begins to respond.
const noAnswer = `connection refused|connection reset by peer|broken pipe|EOF|use of closed network connection|client connection lost|server sent GOAWAY|` +
	`apiserver not ready|the server is currently unable|the server could not find the requested resource|unable to decode an event|context deadline exceeded|Client\.Timeout|` +
	`i/o timeout|unable to return a response in the time allotted|storage is \(re\)initializing|too many requests|Internal error occurred`

// explanations are the errors that faults explain. Any other error in the logs makes the soak fail. A pattern matches a line
// after its level, or a whole line that the logger has not written.
var explanations = []explanation{
	{
		name: "two wanted a Lease at the same time", faults: []fault{faultLease, faultKill, faultStop, faultAPIServer}, others: true, grace: 2 * renewal,
		lines: regexp.MustCompile(`^msg="Failed to (update (lock|lease)|release lease)[^"]*" (logger=\S+ )?err=".*the object has been modified`),
	},
	{
		name: "the API server is away: a program that has just started", faults: cutOff, grace: soon,
		lines: regexp.MustCompile(`^healthscope: cannot run the (monitor|controller): .*(failed to get server groups: unknown$|` + noAnswer + `)`),
	},
	{
		name: "the API server has not read the rights yet", faults: cutOff, grace: soon,
		lines: regexp.MustCompile(`(is forbidden: User \\?"system:serviceaccount:healthscope-system:healthscope-(controller|monitor)\\?"|Unauthorized)`),
	},
	{
		name: "the Lease was taken away", faults: []fault{faultLease}, grace: renewal,
		lines: regexp.MustCompile(`^healthscope: cannot run the (monitor|controller): leader election lost$`),
	},
	{
		// The end of the time to renew cancels the requests of the leader, also in the middle of a response.
		name: "the Lease was taken away: the last look at it", faults: []fault{faultLease}, grace: renewal,
		lines: regexp.MustCompile(`^msg="(Error retrieving lease lock|Unexpected error when reading response body)" (logger=\S+ )?err=".*context deadline exceeded"`),
	},
	{
		name: "the API server was away for longer than a Lease is renewed", faults: cutOff, lasting: outage, grace: renewal,
		lines: regexp.MustCompile(`^healthscope: cannot run the (monitor|controller): leader election lost$`),
	},
	{
		name: "requests were given up by a program that stops", faults: []fault{faultStop, faultEnd, faultLease, faultAPIServer}, grace: renewal,
		lines: regexp.MustCompile(`^msg="[^"]*" .*(context canceled|failed waiting for \*[^ ]* Informer to sync)"( lock=\S+)?$`),
	},
	{
		// The manager of controller-runtime reports the end of the leadership that it releases itself.
		name: "the leadership was given up", faults: []fault{faultStop, faultEnd}, grace: soon,
		lines: regexp.MustCompile(`^msg="error received after stop sequence was engaged" err="(leader election lost|context canceled)"$`),
	},
	{
		name: "two replicas were the first at the same time", faults: []fault{faultBegin}, grace: soon,
		lines: regexp.MustCompile(`^msg="Error initially creating lease lock" (logger=\S+ )?err="leases.coordination.k8s.io \\"healthscope-(monitor|controller)\\" already exists"`),
	},
	{
		// A replica that is elected again reports a new scope that is not healthy again, a minute after its creation. It may not patch events.
		name: "a repeated event was not counted", faults: []fault{faultLease, faultAPIServer}, grace: time.Minute + 2*renewal,
		lines: regexp.MustCompile(`^msg="Server rejected event \(will not retry!\)" .*cannot patch resource \\?"events\\?"`),
	},
	inventoryFailed("half of the requests fail", `status 500`, faultErrors),
	inventoryFailed("it is not available", `status 503`, faultRestarts),
	inventoryFailed("it limits requests", `status 429`, faultLimits),
	inventoryFailed("resource-versions are wrong", `(status 412|keeps changing)`, faultVersions),
	inventoryFailed("connections end", `(connection reset by peer|EOF|broken pipe)`, noReply...),
	inventoryFailed("answers are late", `(context deadline exceeded|Client\.Timeout|the pass took longer)`, faultSlow, faultHangs),
	{
		// Libraries do not list their messages for the end of a connection. The pattern is therefore broad, and comes last.
		name: "the API server is away: requests", faults: cutOff, grace: soon,
		lines: regexp.MustCompile(`^msg="[^"]*" .*(` + noAnswer + `)`),
	},
}

// inventoryFailed returns the explanation of updates of A&AI that failed, by the response of A&AI.
func inventoryFailed(name, answer string, faults ...fault) explanation {
	return explanation{
		name: "A&AI: " + name, faults: faults, grace: soon,
		lines: regexp.MustCompile(`^msg="(Inventory|Modules) not up to date" .*` + answer),
	}
}

// explains reports whether a line in the log of a replica has this explanation.
func (e explanation) explains(replica string, line logLine, all []incident) bool {
	return e.lines.MatchString(line.text) && slices.ContainsFunc(all, func(i incident) bool {
		return slices.Contains(e.faults, i.fault) && (e.others || i.replica == "" || i.replica == replica) && i.end.Sub(i.begin) >= e.lasting &&
			!line.at.Before(i.begin.Truncate(time.Millisecond)) && line.at.Before(i.end.Add(e.grace))
	})
}

// logLine is a line of a log at error level, or one that the logger has not written.
type logLine struct {
	at   time.Time
	text string
}

// logPattern matches a line of the logger: time, level, and the rest.
var logPattern = regexp.MustCompile(`^time=(\S+) level=(\S+) (.*)$`)

// errorsIn returns the lines of a log at error level, and all lines that the logger has not written: last words, panics, and the
// output of the runtime or a library. Such a line has the time of the logger's next line, or otherwise that of the end of the
// log.
func errorsIn(log io.Reader, end time.Time) ([]logLine, error) {
	var all []logLine
	stamped := 0
	stamp := func(at time.Time) {
		for ; stamped < len(all); stamped++ {
			all[stamped].at = at
		}
	}
	scanner := bufio.NewScanner(log)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		parts := logPattern.FindStringSubmatch(scanner.Text())
		if parts == nil {
			all = append(all, logLine{text: scanner.Text()})
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, parts[1])
		if err != nil {
			return nil, fmt.Errorf("cannot parse the time of log line %q: %w", scanner.Text(), err)
		}
		stamp(at)
		if strings.HasPrefix(parts[2], "ERROR") {
			all = append(all, logLine{text: parts[3]})
			stamp(at)
		}
	}
	stamp(end)
	return all, scanner.Err()
}

// explainLogs counts the errors in the logs of all replicas by their explanation. It returns an error for errors without one,
// with at most ten lines.
func (s *soaking) explainLogs() (explained map[string]int, err error) {
	explained = map[string]int{}
	var unexplained []string
	all := s.all()
	for _, r := range s.replicas {
		file, err := os.Open(r.LogPath())
		if err != nil {
			return nil, fmt.Errorf("cannot read the log of %s: %w", r.Name, err)
		}
		lines, err := errorsIn(file, time.Now())
		if err := errors.Join(err, file.Close()); err != nil {
			return nil, fmt.Errorf("cannot read the log of %s: %w", r.Name, err)
		}
		for _, line := range lines {
			i := slices.IndexFunc(explanations, func(e explanation) bool { return e.explains(r.Name, line, all) })
			if i < 0 {
				unexplained = append(unexplained, fmt.Sprintf("%s: %s %s", r.Name, line.at.Format("15:04:05.000"), line.text))
				continue
			}
			explained[explanations[i].name]++
		}
	}
	if len(unexplained) > 0 {
		err = fmt.Errorf("%d errors in the logs have no explanation, the first ones:\n%s", len(unexplained), strings.Join(unexplained[:min(10, len(unexplained))], "\n"))
	}
	return explained, err
}

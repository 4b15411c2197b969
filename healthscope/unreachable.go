package healthscope

import "time"

// MarkUnreachable returns copies of members for the time in which they cannot be read:
// every member, owned ones too, is Unknown with the given reason and since. The message
// is the given one and the last known state; LastState holds that state alone. Other
// fields, such as Serving and Cause, are left out because they may be out of date.
// The order stays the same, and the given members are not changed.
//
// Members that are already unreachable keep their LastState.
func MarkUnreachable(members []Member, reason Reason, message string, since time.Time) []Member {
	if len(members) == 0 {
		return nil
	}
	messages := map[string]string{} // Members share few distinct states.
	unreachable := make([]Member, len(members))
	for i := range members {
		previous := &members[i]
		m := Member{
			Result: Result{
				Key: previous.Key, Version: previous.Version, UID: previous.UID, State: Unknown, Reason: reason, Since: since, Owner: previous.Owner, Labels: previous.Labels,
			},
			Owned: previous.Owned, Counts: Unknown, LastState: previous.State,
		}
		lastKnown := string(previous.State)
		switch {
		case previous.LastState != "":
			m.LastState, lastKnown = previous.LastState, string(previous.LastState)
		case previous.Reason != "":
			lastKnown += " (" + string(previous.Reason) + ")"
		}
		text, ok := messages[lastKnown]
		if !ok {
			text = message + "; last seen " + lastKnown
			messages[lastKnown] = text
		}
		m.Message = text
		unreachable[i] = m
	}
	return unreachable
}

// MarkUnreachable returns the summary of the same members while they cannot be read: all are Unknown.
func (s Summary) MarkUnreachable() Summary { return Summary{Total: s.Total, Unknown: s.Total} }

package healthscope

import "time"

// MarkUnreachable returns members as they are to be shown while they cannot be seen, in
// place of what was last said of them: every one of them, owned ones too, is Unknown
// for the given reason since the time of the loss. The message is the given one and
// the last known state; LastState has the state alone. What else was known of a member, that it served or why it failed, is left
// out, because it may no longer be so. The members themselves stay as they are, and are in the same order.
//
// Members that are lost already keep the state that was known last, for any reason they are lost for now.
func MarkUnreachable(members []Member, reason Reason, message string, since time.Time) []Member {
	if len(members) == 0 {
		return nil
	}
	messages := map[string]string{} // Most members have few states between them.
	lost := make([]Member, len(members))
	for i := range members {
		was := &members[i]
		m := Member{
			Result: Result{
				Key: was.Key, Version: was.Version, UID: was.UID, State: Unknown, Reason: reason, Since: since, Owner: was.Owner, Labels: was.Labels,
			},
			Owned: was.Owned, Counts: Unknown, LastState: was.State,
		}
		seen := string(was.State)
		switch {
		case was.LastState != "":
			m.LastState, seen = was.LastState, string(was.LastState)
		case was.Reason != "":
			seen += " (" + string(was.Reason) + ")"
		}
		text, ok := messages[seen]
		if !ok {
			text = message + "; last seen " + seen
			messages[seen] = text
		}
		m.Message = text
		lost[i] = m
	}
	return lost
}

// MarkUnreachable returns a summary of the same members while they cannot be seen: all are Unknown.
func (s Summary) MarkUnreachable() Summary { return Summary{Total: s.Total, Unknown: s.Total} }

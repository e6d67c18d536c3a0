package sbr

// ContactAttempt is the number of the read by which a suspended member keeps contact with the store; zero:
// none.
func (r *Resolver) ContactAttempt() uint64 { return r.contact.inflight }

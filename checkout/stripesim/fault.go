package stripesim

// recognizeFault finds out which pm_sim_ method, if any, a call would pay with.
func (s *Server) recognizeFault(c *call) {
	if !c.route.pays || c.route.run == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// Where the method is named twice, validation refuses the call; the order of looking does not matter.
	name := params{c.form}.text("payment_method")
	if t, found := c.account.records[params{c.form}.text("confirmation_token")].(*token); found {
		name = t.Test
	}
	if c.subject == "" {
		if !(params{c.form}).boolean("confirm") {
			return
		}
		// Until it is created the PaymentIntent has no id: the key stands for it, and the parameters when there is no key.
		c.faultName = "create:" + c.fingerprint
		if c.keyed() {
			c.faultName = "create:" + c.key
		}
	} else {
		c.faultName = c.subject
		if pi, found := c.account.records[c.subject].(*intent); found && name == "" {
			name = pi.PaymentMethod.id
		}
	}
	if m, found := c.account.records[name].(*method); found {
		name = m.Test
	}
	c.fault = tests[name].fault
	c.faultName += "/" + string(c.fault)
}

// fireOnce tells whether the call's fault is to happen now, and remembers that it did.
func (s *Server) fireOnce(c *call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.account.fired[c.faultName] || s.forgotten(c.account) {
		return false
	}
	if err := s.journal.append(entry{Account: c.account.id, Fired: []string{c.faultName}}); err != nil {
		s.config.Logger.Error("journal failed", "error", err)
	}
	c.account.fired[c.faultName] = true
	return true
}

// fire is fireOnce as a part of the transaction.
func (tx *tx) fire() bool {
	if tx.account.fired[tx.call.faultName] {
		return false
	}
	tx.fired = append(tx.fired, tx.call.faultName)
	return true
}

// limit is the second gate: what is refused there has met neither the key nor the object. The failures of rules that
// store nothing and execute nothing happen here too.
func (s *Server) limit(c *call) (answer, bool) {
	if c.fault == faultRateLimited && s.fireOnce(c) {
		return c.failed(errRateLimited()), true
	}
	if f := s.failure(c); f != nil {
		if f.Stored || f.Executed {
			c.failure = f
			return answer{}, false
		}
		return f.answer(c), true
	}
	return answer{}, false
}

// Package simulator is the way into the simulator from Go. The world it plays in is simulator/world, the files it reads are
// simulator/scenario.
package simulator

package strategies

// nearest returns the word that takes the fewest edits to become key, or "" if none is close: at most a third of its letters may differ.
func nearest(key string, words []string) string {
	best, bestDistance := "", 0
	for _, w := range words {
		d := distance(key, w)
		if d <= len(w)/3 && (best == "" || d < bestDistance) {
			best, bestDistance = w, d
		}
	}
	return best
}

// distance is how many bytes must be inserted, deleted or replaced to turn a into b (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}

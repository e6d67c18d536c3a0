// Package formats holds what the program writes and documents against validators of others: JUnit reports
// against an XML Schema, scenario files against the JSON Schema that editors get.
package formats

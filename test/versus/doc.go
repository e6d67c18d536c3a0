// Package versus measures the lease side by side with client-go's leaderelection. It is a module of its own,
// because the typed clients that leaderelection needs would triple what the product's module has to download.
package versus

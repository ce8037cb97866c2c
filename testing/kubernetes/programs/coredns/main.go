// CoreDNS with the plugins that it is shipped with.
package main

import (
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/core/plugin"
)

func main() { coremain.Run() }

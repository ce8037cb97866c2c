// Thumbnails scales pictures down and sends them as JPEG.
//
// FAULT=1 scales the whole picture in every request instead of once.
package main

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"log"
	"net/http"
	"os"
)

const (
	side      = 1_600
	thumbnail = 160
)

var (
	faulty  = os.Getenv("FAULT") != ""
	picture = gradient()
	cached  = render()
)

func gradient() *image.RGBA {
	picture := image.NewRGBA(image.Rect(0, 0, side, side))
	for y := range side {
		for x := range side {
			picture.SetRGBA(x, y, color.RGBA{R: uint8(x), G: uint8(y), B: uint8(x * y), A: 255})
		}
	}
	return picture
}

// scale averages the pixels of each square.
func scale() *image.RGBA {
	const factor = side / thumbnail
	small := image.NewRGBA(image.Rect(0, 0, thumbnail, thumbnail))
	for at := range thumbnail * thumbnail {
		var red, green, blue int
		for offset := range factor * factor {
			pixel := picture.RGBAAt(at%thumbnail*factor+offset%factor, at/thumbnail*factor+offset/factor)
			red, green, blue = red+int(pixel.R), green+int(pixel.G), blue+int(pixel.B)
		}
		const pixels = factor * factor
		small.SetRGBA(at%thumbnail, at/thumbnail,
			color.RGBA{R: uint8(red / pixels), G: uint8(green / pixels), B: uint8(blue / pixels), A: 255})
	}
	return small
}

func render() []byte {
	var buffer bytes.Buffer
	_ = jpeg.Encode(&buffer, scale(), nil)
	return buffer.Bytes()
}

func main() {
	http.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	http.HandleFunc("GET /thumbnail", func(w http.ResponseWriter, _ *http.Request) {
		body := cached
		if faulty {
			body = render()
		}
		w.Header().Set("Content-Type", "image/jpeg")
		_, _ = w.Write(body)
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}

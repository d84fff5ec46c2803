package view

import "payonce/static"

// LastResort is a whole page for when no other page could be rendered. It is put together once at the start, so nothing
// about it can fail while a buyer waits.
var LastResort = []byte(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>Something went wrong · Pay Once</title>
<link rel="stylesheet" href="` + static.Path("pay.css") + `"></head>
<body><main id="main" class="stack">
<h1>This page could not be shown.</h1>
<p class="lede">The fault is ours. If you were paying, do not pay on a new page: the order says whether your card was charged.</p>
<p class="buttons"><a class="button" href="/orders">See your orders</a> <a class="button button-plain" href="/">Courses</a></p>
</main></body></html>
`)

// Package report makes the report of a run: the fields of report.json, and the page that shows
// them, report.html.
//
// A [Report] has everything that the page shows, so that the page of one run, or of several side by
// side, is made from report.json alone. Its size does not grow with the graph: tables have at most
// [MaxRows] lines, and say what they leave out.
//
// [Page] writes one HTML file that needs no network. Each chart stands above a table with its
// numbers, and the script of the page draws the chart from that table: who has no script, or reads
// with a screen reader, has the table. Charts are drawn by uPlot (MIT licence, in the folder
// uplot).
//
// The page of the same reports has the same bytes. Reports hold times, so those of two runs differ.
package report

// Command ndls smooths graphs that do not fit in memory: node dependent local
// smoothing (NDLS) of features and labels, with a multilayer perceptron between.
//
// Each verb is one file. stdout carries results, stderr progress and logs; the
// exit statuses are in every verb's help.
package main

"""Self-contained HTML pages: what the report of a model, the demo and `reproduce` are made of.

report     a page: text, tables, claims, pictures
charts     lines as SVG text
heatmap    heat maps as SVG text
"""

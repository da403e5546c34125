"""Laws of textbooks that no setting was chosen by, noise-free or not: which of them `SymbolicRegressor` finds as it comes.

    python tests/bench/bench_textbook.py [--half first|second] [--wide | --more] [--noise 0] [--seconds 10] [--seeds 1-3]
                                         [--laws Antoine]

Two halves of 30 laws of engineering, chemistry, biology and finance, of 50 with more inputs (`--wide`), and of 30 that were
written when nothing was left to choose (`--more`), none of them Feynman's: settings may be chosen by the first halves, the second
tell. A law has 40 to 200 training rows and 1,000 for testing, drawn evenly or, behind `log`, evenly in the logarithm. It is found
if 1 - R² of the test rows is below 1e-9. A line of JSON for each search. Longer than most modules: half is the laws.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evo import SymbolicRegressor

EXACT = 1e-9
NUM_TEST = 1000
# Name; formula; rows; ranges. Odd lines are the first half, even lines the second.
_LAWS = """
Antoine; 10**(8.07131-1730.63/(233.426+T)); 60; T 1 100
Clausius-Clapeyron; 101.3*exp(4890*(1/373.15-1/T)); 60; T 280 450
Gompertz; 7.5*exp(-3.2*exp(-0.21*t)); 80; t 0 30
von Bertalanffy; 52*(1-exp(-0.31*(t+0.6)))**3; 80; t 0 12
logistic growth; 640/(1+9.2*exp(-0.55*t)); 60; t 0 16
four-parameter logistic; 0.15+1.9/(1+(c/3.4)**1.6); 80; c log 0.05 200
Michaelis-Menten; 12.4*s/(3.1+s); 40; s log 0.1 100
Haldane; 1.3*s/(0.8+s+s**2/14); 60; s log 0.05 120
competitive inhibition; 8.2*s/(2.5*(1+i/0.7)+s); 120; s log 0.1 50, i 0 5
uncompetitive inhibition; 5.5*s/(1.4+s*(1+i/2.2)); 120; s log 0.1 50, i 0 8
Morse; 4.6*(1-exp(-1.9*(r-0.74)))**2; 80; r 0.4 4
Lennard-Jones; 4*0.8*((3.2/r)**12-(3.2/r)**6); 80; r 3 8
Buckingham; 1200*exp(-3.1*r)-40/r**6; 80; r 1.9 6
Yukawa; 14.4*q*exp(-r/2.7)/r; 120; q 1 5, r 0.3 9
Lorentz line; 3.3/((w-5.2)**2+0.36); 80; w 1 10
Gaussian peak; 6.1*exp(-(x-3.7)**2/1.62); 80; x 0 8
resonance; F/sqrt((w0**2-w**2)**2+(0.3*w)**2); 200; F 1 5, w0 1 3, w 0.5 4
Breit-Wigner; 2.2*g**2/((E-91.2)**2+g**2/4); 200; g 1 4, E 85 97
Arrhenius; 2.4e9*exp(-8200/T); 60; T 300 900
Eyring; 2.08e10*T*exp(-6500/T); 60; T 280 420
Kepler; sqrt(a**3/(m1+m2)); 100; a log 0.3 40, m1 0.5 5, m2 0.1 5
orbital speed; sqrt(398.6*(2/r-1/a)); 120; r 7 20, a 12 40
relativistic gamma; 1/sqrt(1-(v/2.998)**2); 60; v 0 2.9
terminal speed; sqrt(2*m*9.81/(1.2*A*C)); 100; m 1 100, A 0.1 2, C 0.3 1.5
Gaussian beam; 0.8*sqrt(1+(z/12.5)**2); 60; z -60 60
thin lens; f*s/(s-f); 100; f 1 5, s 6 60
lensmaker; 1/((n-1)*(1/r1-1/r2)); 120; n 1.3 1.9, r1 5 15, r2 20 60
parallel resistors; 1/(1/a+1/b+1/c); 120; a log 1 100, b log 1 100, c log 1 100
Manning; S**0.5*R**(2/3)*A/0.013; 100; S log 0.0001 0.02, R 0.2 4, A 0.5 40
Hazen-Williams; 10.67*L*Q**1.852/(120**1.852*d**4.87); 120; L 10 500, Q 0.01 0.5, d 0.1 1
Darcy-Weisbach; 0.02*L*v**2/(d*19.62); 120; L 5 200, v 0.3 4, d 0.05 0.8
Swamee-Jain; 0.25/log10(e/3.7+5.74/Re**0.9)**2; 150; e log 1e-5 0.02, Re log 5000 1e7
weir; 1.84*(b-0.2*h)*h**1.5; 80; b 1 6, h 0.05 0.9
pump curve; 42*(n/1450)**2-0.0031*q**2; 60; q 10 90, n 900 1800
RC charge; V*(1-exp(-t/(R*C))); 150; V 1 12, t 0 5, R 0.5 4, C 0.2 2
damped oscillation; 3.4*exp(-0.23*t)*cos(2.9*t+0.6); 100; t 0 12
diode; 0.0021*(exp(v/0.0512)-1); 60; v 0 0.5
Shockley with series; v/(2.2+0.4*v)+0.03*v**2; 60; v 0 12
Planck; l**-5*38/(exp(14.4/l)-1); 80; l 0.8 12
Wien; 21*f**3*exp(-1.7*f); 60; f 0.1 8
Bose-Einstein; 1/(exp((E-0.1)/0.43)-1); 80; E 0.3 3
Fermi; 1/(1+exp((E-1.2)/T)); 120; E 0 3, T 0.1 0.8
Langmuir; 3.7*0.21*p/(1+0.21*p); 40; p log 0.05 100
Freundlich; 2.3*c**0.37; 40; c log 0.01 100
BET; 1.7*60*x/((1-x)*(1+59*x)); 60; x 0.02 0.7
van der Waals; 8.314*T/(v-0.032)-0.365/v**2; 120; T 250 500, v 0.08 2
virial; 8.314*T/v*(1+0.021/v); 100; T 250 500, v 0.05 2
Redlich-Kwong; 8.314*T/(v-0.03)-1.55/(sqrt(T)*v*(v+0.03)); 150; T 250 500, v 0.08 1
saturation humidity; rh*6.112*exp(17.67*T/(T+243.5)); 120; rh 0.1 1, T -10 40
wind chill; 13.12+0.6215*T-11.37*v**0.16+0.3965*T*v**0.16; 150; T -30 5, v 5 60
Steinhart; 1/(0.00112+0.000234*log(R)); 60; R log 300 3e5
Nernst; 0.0257*log(co/ci); 80; co log 1 150, ci log 1 150
Goldman; 26.7*log((k+0.04*n)/(140+0.04*12)); 120; k 1 20, n 50 200
annuity; P*r/(1-(1+r)**-n); 150; P 1 50, r 0.01 0.12, n 2 30
compound growth; P*(1+r/12)**(12*t); 150; P 1 20, r 0.01 0.15, t 1 20
Black discount; S*exp(-q*t)-K*exp(-r*t); 200; S 50 150, K 50 150, q 0 0.05, r 0 0.1, t 0.1 5
allometry; 3.4*m**0.75+0.0*a; 60; m log 0.01 1000, a 0 1
Holling III; 2.8*x**2/(1.9+x**2); 60; x log 0.05 40
Ricker; 4.2*s*exp(-0.37*s); 40; s 0 12
Beverton-Holt; 5.6*s/(1+0.44*s); 40; s 0 20
"""
# A hundred more, of up to five inputs, some of which do nothing.
_WIDE = """
radiative exchange; 5.67e-8*e*(T1**4-T2**4); 120; e 0.1 1, T1 400 900, T2 250 390
Newton's cooling; Ta+(T0-Ta)*exp(-0.043*t); 150; Ta 5 30, T0 60 100, t 0 90
orifice flow; 0.62*A*sqrt(2*9.81*h); 50; A log 0.001 0.5, h 0.1 12, c 0 1
Blasius; 0.158*L*rho**0.75*mu**0.25*d**-1.25*v**1.75; 150; L 1 100, rho 700 1200, mu log 1e-4 1e-2, d 0.01 0.3, v 0.2 4
Chezy; C*sqrt(R*S); 60; C 20 90, R log 0.1 10, S log 1e-4 0.05
Hagen-Poiseuille; 3.14159265*r**4*p/(8*mu*L); 100; r log 1e-3 0.1, p 100 5000, mu log 1e-4 1, L 0.5 20
Euler buckling; 9.8696044*E*I/(K*L)**2; 80; E 70 210, I log 1 1000, K 0.5 2, L 1 8
cantilever; F*L**3/(3*E*I); 60; F 10 500, L 0.5 6, E 70 210, I log 1 1000, w 1 9
thick cylinder; p*a**2*(1+b**2/r**2)/(b**2-a**2); 150; p 1 40, a 0.5 1, b 2 4, r 1 2
Goodman; 1/(s/210+m/480); 60; s log 5 200, m 10 300, h 0 1
noncompetitive inhibition; 9.1*s/((2.4+s)*(1+i/0.8)); 80; s log 0.05 80, i 0 6
Hill; V*s**2.6/(7.3**2.6+s**2.6); 100; V 1 9, s log 0.3 120
Monod with decay; X*(0.52*s/(1.7+s)-0.06); 80; X 0.1 5, s log 0.05 60, T 10 40
Henderson-Hasselbalch; pK+log10(a/b); 40; pK 3 10, a log 0.001 1, b log 0.001 1
Nernst in millivolts; 0.08617*T/z*log(a/b); 100; T 273 320, z 1 3, a log 0.1 200, b log 0.1 200
Butler-Volmer; j*(exp(19.5*v)-exp(-19.5*v)); 80; j log 0.01 10, v -0.12 0.12
Tafel; b*log10(i/3.2e-4); 50; b 0.03 0.15, i log 1e-3 10, T 280 340
Debye-Hueckel; -0.509*z**2*sqrt(I)/(1+0.33*a*sqrt(I)); 120; z 1 3, I log 1e-4 0.5, a 3 9
Arrhenius of two inputs; A*exp(-E/(0.008314*T)); 120; A log 1 1000, E 5 30, T 280 600
van 't Hoff; K*exp(H/0.008314*(1/298.15-1/T)); 120; K log 0.1 100, H 5 60, T 280 360
stirred tank; c*k*t/(1+k*t); 60; c 0.5 5, k log 0.01 2, t log 0.5 100
second-order batch; c/(1+k*c*t); 80; c 0.1 4, k log 0.01 3, t 0 60, T 10 40
logarithmic mean; (a-b)/log(a/b); 80; a 20 90, b 2 18
effectiveness of a condenser; 1-exp(-U*A/(m*4.18)); 100; U 0.1 1.5, A 1 12, m 0.5 8
fin; tanh(m*L)/(m*L); 80; m 2 40, L 0.01 0.2
Dittus-Boelter; 0.023*Re**0.8*Pr**0.4; 50; Re log 1e4 1e6, Pr log 0.7 160, x 1 2
Stokes settling; 9.81*d**2*(p-f)/(18*mu); 100; d log 0.001 0.1, p 1500 4000, f 800 1200, mu log 0.0005 0.1
Venturi; A*sqrt(2*p/(rho*(1-(A/B)**2))); 150; A 0.01 0.05, B 0.08 0.3, p log 100 1e5, rho 700 1100
barometric; p*exp(-0.0342*h/T); 60; p 90 105, h 0 9000, T 230 310, q 0 1
stagnation pressure; p*(1+0.2*M**2)**3.5; 80; p 10 110, M 0.1 3
present value of an annuity; P*(1-(1+r)**-n)/r; 120; P 1 50, r 0.01 0.15, n 2 40
Gordon growth; D*(1+g)/(r-g); 100; D 0.5 8, g 0 0.04, r 0.06 0.15, b 0 2
CAPM; f+b*(m-f); 40; f 0.01 0.05, b 0.2 2, m 0.04 0.12, s 0.1 0.5
Black's d1; (log(S/K)+(r+v**2/2)*t)/(v*sqrt(t)); 200; S 50 150, K 50 150, r 0 0.1, v 0.1 0.6, t 0.1 3
Cobb-Douglas; 1.3*K**0.34*L**0.66; 60; K log 1 1000, L log 1 1000, x 0 1
two assets; sqrt(w**2*a**2+(1-w)**2*b**2); 150; w 0.05 0.95, a 0.05 0.5, b 0.05 0.5
zero-coupon bond; F/(1+r)**n; 80; F 50 200, r 0.005 0.15, n 1 30
Verhulst; K/(1+(K/2.5-1)*exp(-0.31*t)); 120; K 20 200, t 0 25
Holling II; a*n/(1+a*0.32*n); 60; a log 0.02 2, n log 1 200, m 0 1
metabolic theory; 9.2*m**0.75*exp(-7.5*(300/T-1)); 80; m log 0.01 1000, T 275 310
Fick's cardiac output; V/(a-b); 50; V 150 3000, a 170 210, b 60 150, h 50 190
oral dose; D*(exp(-0.17*t)-exp(-1.4*t))/V; 120; D 50 500, V 10 60, t 0 24
intravenous dose; D/V*exp(-C*t/V); 120; D 50 500, V 5 60, C 0.5 6, t 0 24
Cockcroft-Gault; (140-a)*w/(72*c); 60; a 20 90, w 45 110, c 0.5 4, h 150 200
Du Bois; 0.007184*w**0.425*h**0.725; 40; w 10 120, h 70 200, a 20 80
series resonance; sqrt(R**2+(w*L-1/(w*C))**2); 200; R 1 20, w 0.5 5, L 1 8, C 0.02 0.3
low-pass gain; V/sqrt(1+(w*R*0.22)**2); 100; V 1 10, w log 0.1 50, R 0.5 5
loaded divider; V*b/(a+b+a*b/47); 120; V 1 24, a log 1 100, b log 1 100
skin depth; 503.3*sqrt(r/(m*f)); 60; r log 1e-8 1e-6, m 1 100, f log 50 1e6
coaxial capacitance; 55.63*e/log(b/a); 80; e 1 5, a 0.2 1, b 2 12, L 1 9
Doppler of both; f*(343+v)/(343-u); 80; f 200 2000, v 0 60, u 0 60, T 0 30
normal reflectance; ((n-m)/(n+m))**2; 60; n 1 1.6, m 1.8 4
Bragg; n*l/(2*sin(a)); 80; n 1 3, l 0.5 2, a 0.15 1.4
rocket; v*log(a/b)-9.81*t; 100; v 1500 4500, a 50 300, b 5 40, t 20 200
Hohmann; sqrt(398600/r)*(sqrt(2*s/(r+s))-1); 120; r 6600 12000, s 13000 60000
damped frequency; sqrt(k/m-(c/(2*m))**2); 120; k 20 200, m 0.5 4, c 0.1 4
hydraulic jump; y/2*(sqrt(1+8*F**2)-1); 60; y 0.1 2, F 1.1 9, S 0 0.02
Thiem; Q/(6.283185*T)*log(R/r); 100; Q 1 60, T log 0.1 20, R 100 900, r 0.1 2
vapour deficit; 0.6108*exp(17.27*T/(T+237.3))*(1-h); 100; T -5 45, h 0.05 0.98, p 90 105
Kozeny-Carman; n**3*d**2/(180*(1-n)**2); 80; n 0.15 0.6, d log 0.01 2
Cunningham slip; 1+l/d*(2.514+0.8*exp(-0.55*d/l)); 100; l log 0.02 2, d log 0.02 5
Sutherland; 1.716e-2*(T/273.15)**1.5*383.55/(T+110.4); 60; T 150 1500, p 1 9
Gaddum; E*a/(a+2.7*(1+b/0.6)); 120; E 1 9, a log 0.05 100, b log 0.01 10
Platt; P*(1-exp(-0.031*I/P)); 100; P 1 12, I 0 1500
Smith light response; 0.05*P*I/sqrt(P**2+(0.05*I)**2); 100; P 2 25, I 0 1500, T 10 30
temperature and substrate; 2.1**((T-25)/10)*6.3*s/(3.2+s); 100; T 5 40, s log 0.1 100
slope of vapour pressure; 2503.06*exp(17.27*T/(T+237.3))/(T+237.3)**2; 60; T -10 45, h 0 1
Haaland; (-1.8*log10((e/3.7)**1.11+6.9/Re))**-2; 150; e log 1e-5 0.04, Re log 5000 1e7
Peng-Robinson; 8.314*T/(v-0.027)-0.4/(v**2+0.054*v-0.000729); 150; T 250 500, v 0.08 1
repulsion and attraction; 4*e*((3.4/r)**12-(3.4/r)**6); 100; e 0.2 3, r 3.1 9
black body; 3.742e2/(l**5*(exp(14.388/(l*T))-1)); 120; l 0.3 6, T 1 6
Bose-Einstein with temperature; 1/(exp((E-0.2)/(0.0862*T))-1); 100; E 0.3 2, T 2 12
two adsorbates; 4.1*0.8*a/(1+0.8*a+0.33*b); 80; a log 0.05 50, b log 0.05 50
Sips; q*(0.45*c)**0.7/(1+(0.45*c)**0.7); 80; q 1 6, c log 0.01 100
thermistor; R*exp(B*(1/T-1/298.15)); 100; R log 1 100, B 3000 4500, T 260 380
diode with temperature; s*(exp(11.6*v/(1.3*T))-1); 100; s log 0.001 0.1, v 0 0.6, T 0.9 1.3
transistor in saturation; 0.5*k*(g-0.7)**2*(1+0.03*d); 80; k 0.1 4, g 0.8 5, d 0.5 10
reflection coefficient; (Z-50)/(Z+50); 40; Z log 1 2000, f 1 5
forced oscillator; F/sqrt((1-r**2)**2+(2*z*r)**2); 150; F 1 6, r 0.1 3, z 0.05 0.9
conic orbit; a*(1-e**2)/(1+e*cos(f)); 120; a 1 30, e 0.05 0.9, f 0 6.28
fall with drag; v*tanh(9.81*t/v); 100; v 5 60, t 0 12
exponential approach; 0.8+v*(1-exp(-t/2.3)); 60; v 1 9, t 0 12, m 0 1
Gaussian plume; Q/(3.14159265*u*s*w)*exp(-h**2/(2*w**2)); 200; Q 1 50, u 1 9, s 20 200, w 20 120, h 10 120
Cooper-Jacob; Q/(12.566371*T)*log(2.25*T*t/(r**2*0.0003)); 150; Q 100 2000, T 50 900, t log 0.01 10, r 5 80
Horton; c+(f-c)*exp(-1.7*t); 100; c 0.2 1.5, f 3 9, t 0 4
van Genuchten; 0.078+0.352/(1+(0.036*h)**1.56)**0.359; 80; h log 0.5 10000, z 0 1
Philip; 0.5*S/sqrt(t)+0.31*K; 60; S 0.1 5, t 0.05 9, K 0.1 3
weir with approach; 1.84*b*((h+v**2/19.62)**1.5-(v**2/19.62)**1.5); 120; b 0.5 8, h 0.05 0.9, v 0.1 2
Bernoulli head; z+p/9.81+v**2/19.62; 60; z 0 20, p 10 400, v 0.2 9, x 0 1, w 1 5
principal stress; (a+b)/2+sqrt(((a-b)/2)**2+t**2); 120; a -100 100, b -100 100, t -60 60
von Mises; sqrt(a**2-a*b+b**2+3*t**2); 120; a 10 200, b 10 200, t 5 90
Rankine-Gordon; A*330/(1+(L/r)**2/7500); 80; A 1 40, L 50 500, r 1 6
growing annuity; P/(r-g)*(1-((1+g)/(1+r))**n); 150; P 1 50, r 0.06 0.15, g 0.005 0.04, n 2 30
Kelly; (b*p-(1-p))/b; 50; b 0.3 6, p 0.2 0.9
order quantity; sqrt(2*D*K/h); 60; D log 10 10000, K 1 90, h 0.1 8, q 1 3
cost of capital; e/(e+d)*r+d/(e+d)*0.7*i; 120; e 10 90, d 5 80, r 0.06 0.15, i 0.02 0.08
Hamada; b*(1+(1-t)*d/e); 80; b 0.3 1.6, t 0.1 0.4, d 5 80, e 20 90
queue length; l**2/(m*(m-l)); 60; l 0.5 4, m 5 12, k 1 4
wall; 1/(1/h+d/0.72+1/25); 80; h 3 30, d 0.05 0.6
Fabry-Perot; I/(1+7.2*sin(p)**2); 100; I 1 9, p 0 6
"""
# Sixty more: waves, sound, wind, creep, cracks and others.
_MORE = """
Colebrook smooth approx; (1.82*log10(Re)-1.64)**-2; 60; Re log 5000 1e7
Antoine of mixture; x*10**(6.9-1211/(220.8+T))+(1-x)*10**(6.95-1344/(219.5+T)); 150; x 0.02 0.98, T 20 110
Magnus dew point; 243.5*log(v/6.112)/(17.67-log(v/6.112)); 60; v log 1 60
Clausius two bodies; A*T**2*exp(-4.5/(8.617e-5*T)); 80; A 30 120, T 1500 2600
Child-Langmuir; 2.33e-6*A*V**1.5/d**2; 80; A 0.1 4, V log 10 5000, d 0.1 2
Archie; a*0.05/(p**2*s**2); 80; a 0.6 1.4, p 0.05 0.4, s 0.2 1
Rayleigh scattering; I*8.2*(1+cos(t)**2)/l**4; 100; I 1 9, t 0 3.1, l 0.35 0.8
Malus; I*cos(t)**2; 50; I 1 20, t 0 3.1, w 0 1
diffraction of a slit; (sin(2.6*x)/(2.6*x))**2; 80; x 0.05 4
Airmass; 1/(sin(h)+0.15*(h*57.3+3.885)**-1.253); 60; h 0.05 1.5
Saha exponent; n*T**1.5*exp(-15.8/T); 80; n 0.1 5, T 0.5 9
Larmor; 0.667*q**2*a**2/27; 60; q 1 5, a 0.1 6, m 1 9
Cyclotron radius; m*v/(q*B)/sqrt(1-(v/3)**2); 120; m 1 9, v 0.2 2.7, q 1 3, B 0.1 5
Compton; l+0.02426*(1-cos(t)); 60; l 0.01 0.5, t 0 3.14
Lens power; (n-1)*(1/r-1/s+(n-1)*0.4/(n*r*s)); 150; n 1.3 1.9, r 4 20, s 5 40
Torricelli time; A/B*sqrt(2*h/9.81); 60; A 1 20, B 0.05 1, h 0.1 9
Francis with end; 1.84*(L-0.1*n*h)*h**1.5; 100; L 2 9, n 0 2, h 0.05 0.9
Strickler; k*A**(5/3)/P**(2/3)*sqrt(S); 120; k 20 90, A 0.5 30, P 2 20, S log 1e-4 0.02
Moody relative; f*L/d*v**2/2; 100; f 0.01 0.05, L 10 200, d 0.05 1, v 0.2 5
centrifugal head; (w*r)**2/19.62-1.7*w*q; 80; w 20 160, r 0.05 0.3, q 0 0.3
Prandtl mixing; 0.41*0.41*z**2*s*sqrt(s*s); 60; z 0.01 1, s -5 5
log wind profile; u/0.41*log((z-0.7)/0.06); 80; u 0.1 0.9, z 2 80
power wind profile; v*(z/10)**0.143; 60; v 2 20, z 5 150, T 0 30
wind power; 0.5*1.225*A*v**3*0.42; 60; A 5 900, v 3 15, p 0.9 1.1
Betz with drag; 4*a*(1-a)**2-0.08*a; 50; a 0.01 0.6
photovoltaic; G/1000*P*(1-0.0041*(T-25)); 80; G 100 1100, P 50 400, T -5 70
battery Peukert; H*(C/(I*H))**1.18; 80; H 5 20, C 20 200, I 1 40
capacitor energy; 0.5*C*(a**2-b**2); 60; C 0.1 9, a 5 20, b 0 4.9
inductor current; V/R*(1-exp(-R*t/L)); 150; V 1 24, R 1 20, L 0.1 3, t 0 1
two-port gain; 1/(1+a*b)*a; 60; a log 1 1000, b log 0.001 0.5
Friis; P*G*H*(0.125/(12.566371*R))**2; 100; P 0.1 9, G 1 30, H 1 30, R log 10 5000
free-space loss in dB; 20*log10(d)+20*log10(f)-27.55; 60; d log 1 10000, f log 10 10000
Shannon; B*log(1+S/N)/0.6931472; 80; B 1 40, S log 0.1 500, N 0.5 9
noise figure; F+(G-1)/H; 60; F 1 4, G 1 9, H 2 60
A-weighting part; f**4*148840000/((f**2+424.4)*(f**2+148840000)); 60; f log 10 20000
Sabine; 0.161*V/(S*a+0.2*b); 100; V 50 2000, S 50 900, a 0.05 0.6, b 1 60
string frequency; sqrt(T/m)/(2*L); 60; T 10 200, m log 0.0005 0.02, L 0.3 1.5
Helmholtz resonator; 54.6*sqrt(A/(V*(l+0.017))); 100; A log 1e-4 0.01, V log 1e-3 0.1, l 0.01 0.2
beam deflection between supports; P*b*x*(L**2-b**2-x**2)/(6*L*210); 200; P 1 20, b 1 3, x 0 3, L 6 9
torsion; 16*T/(3.14159265*d**3*(1-k**4)); 100; T 1 90, d 0.1 0.9, k 0.1 0.8
Hertz contact; (6*F*R/(2*117))**(1/3); 50; F log 1 1000, R 0.1 9
Paris crack; 2.1e-3*(Y*s*sqrt(3.14159265*a))**3.1; 100; Y 0.9 1.3, s 5 60, a 0.01 0.6
Larson-Miller; T*(20+log10(t))/1000; 60; T 700 1200, t log 1 1e5
Norton creep; 3e3*s**4.6*exp(-29000/T); 80; s 1 9, T 800 1300
Hall-Petch; 70+0.74/sqrt(d); 40; d log 0.001 1, T 20 90
Avrami; 1-exp(-0.014*t**2.3); 60; t 0.1 15
Kissinger; log(b/T**2); 60; b 1 40, T 400 900
Freundlich with temperature; K*c**0.42*exp(1200/T); 100; K 0.5 6, c log 0.01 50, T 280 370
Langmuir-Hinshelwood; 3.9*a*b/(1+0.7*a+1.9*b)**2; 120; a log 0.05 30, b log 0.05 30
Tessier growth; 0.62*(1-exp(-s/2.7)); 50; s 0 20
Contois; 0.7*s*x/(1.4*x+s); 80; s log 0.1 50, x log 0.1 30
cardinal temperature; 0.021*(T-4.5)**2*(1-exp(0.31*(T-38))); 80; T 5 37
Penman part; (D*R+0.26*g*v)/(D+g*(1+0.34*u)); 200; D 0.05 0.4, R 50 400, g 0.05 0.08, v 0.1 3, u 0.2 6
heat index cubic; 0.5*(T+61+1.2*(T-68)+0.094*h); 60; T 60 100, h 10 95
Beer-Lambert canopy; I*(1-exp(-0.52*L))*0.86; 80; I 100 2000, L 0.1 7
species area; c*A**0.26; 50; c 1 40, A log 0.1 10000
logistic map of harvest; 0.8*N*(1-N/150)-0.21*E*N; 80; N 5 160, E 0 3
bond duration; (1+y)/y-(1+y+n*(c-y))/(c*((1+y)**n-1)+y); 200; y 0.01 0.1, n 2 30, c 0.02 0.12
Sharpe of two; (w*0.08+(1-w)*0.03-r)/sqrt((w*0.2)**2+((1-w)*0.07)**2); 150; w 0 1, r 0 0.02
"""


class Law(NamedTuple):
    """A formula, how many rows train, and ranges: their kind, low and high."""

    name: str
    formula: str
    num_rows: int
    ranges: dict[str, tuple[str, float, float]]

    def sample(self, num_rows: int, generator: np.random.Generator) -> dict[str, NDArray[np.float64]]:
        """Columns of inputs."""
        return {
            name: np.exp(generator.uniform(np.log(low), np.log(high), num_rows))
            if kind == "log"
            else generator.uniform(low, high, num_rows)
            for name, (kind, low, high) in self.ranges.items()
        }

    def value(self, columns: dict[str, NDArray[np.float64]]) -> NDArray[np.float64]:
        """The formula at columns."""
        known = {name: getattr(np, name) for name in ("exp", "log", "log10", "sqrt", "sin", "cos", "tanh")}
        return eval(self.formula, {"__builtins__": {}}, {**known, **columns})


def laws(half: str, is_wide: bool = False, is_more: bool = False) -> list[Law]:
    """The laws of a half."""
    found = []
    for line in (_MORE if is_more else _WIDE if is_wide else _LAWS).strip().splitlines()[half == "second" :: 2]:
        name, formula, rows, ranges = line.split("; ")
        parts = [part.split() for part in ranges.split(",")]
        found.append(Law(name, formula, int(rows), {p[0]: (p[1] * (len(p) > 3), float(p[-2]), float(p[-1])) for p in parts}))
    return found


def run(law: Law, seed: int, noise: float, seconds: float) -> dict[str, object]:
    """A fit of a law by the estimator at its defaults."""
    generator = np.random.default_rng([seed, *law.name.encode()])
    train, test = law.sample(law.num_rows, generator), law.sample(NUM_TEST, generator)
    y, truth = law.value(train), law.value(test)
    y = y + noise * y.std() * generator.standard_normal(len(y))
    model = SymbolicRegressor(max_time=seconds, random_state=seed, n_jobs=1)
    start = time.process_time()
    model.fit(np.column_stack([*train.values()]), y)
    cpu_s = time.process_time() - start
    losses = []
    for row in range(len(model.equations_)):
        predicted = model.predict(np.column_stack([*test.values()]), row)
        losses.append(float(np.mean((predicted - truth) ** 2) / truth.var()))
    chosen = losses[model.get_best().name]
    front = float(np.nanmin(losses))
    row = {"law": law.name, "seed": seed, "noise": noise, "found": chosen < EXACT, "error": chosen, "front": front}
    return {**row, "cpu_s": round(cpu_s, 2), "size": int(model.get_best().complexity), "text": model.get_best().equation}


def main() -> None:
    """Runs the laws."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=("first", "second"), default="first")
    parser.add_argument("--wide", action="store_true", help="the hundred laws of up to five inputs instead")
    parser.add_argument("--more", action="store_true", help="the last sixty laws instead")
    parser.add_argument("--noise", type=float, default=0.0)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seeds", default="1-3")
    parser.add_argument("--laws", default="")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    time.monotonic = time.process_time  # seconds of one core, whatever else the machine does
    first, _, last = options.seeds.partition("-")
    for seed in range(int(first), int(last or first) + 1):
        for law in laws(options.half, options.wide, options.more):
            if not options.laws or law.name in options.laws.split(","):
                print(json.dumps(run(law, seed, options.noise, options.seconds)), flush=True)


if __name__ == "__main__":
    main()
